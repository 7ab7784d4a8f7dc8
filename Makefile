# Every target sets up what it needs. `make help` lists them.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CHECKED := toolkit tests examples benchmarks docs
BENCH_VENV := .venv-bench
BENCH_READY := $(BENCH_VENV)/.ready
BENCH := $(BENCH_VENV)/bin/python -m benchmarks
BENCH_RUN := build/bench/results.json
FUZZ_PACKAGES := build/fuzz/packages
FUZZ_READY := $(FUZZ_PACKAGES)/.ready
FUZZ_SECONDS ?= 20
COMPILE := $(BIN)/uv pip compile --quiet --generate-hashes --universal --python-version 3.11 --no-header --extra codegen --upgrade

# Tests start thousands of interpreters. With this variable of Python, each would compile all it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup run quick test test-all fuzz mutants corpus generate check-generated typecheck lint bench bench-check bench-keep stress docs lock

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## everything into .venv, versions as locked

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(BENCH_READY): benchmarks/requirements.lock | $(READY)
	$(BIN)/python -m benchmarks.environment $(BENCH_VENV)
	@touch $@

run: $(READY) ## the main job: generate, type-check the sample agent, run it in a sandboxed workspace
	@$(BIN)/python -m examples.main_job

quick: $(READY) ## the inner loop, under a minute: ruff, mypy's daemon, toolkit check, the fast tests
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .
	$(BIN)/dmypy run --timeout 1800 -- $(CHECKED)
	$(BIN)/toolkit check
	$(BIN)/pytest --quiet -n 2 --quick -m "not slow"

# Two processes more than cores: many tests wait for what they started to end.
test: check-generated lint typecheck ## every check
	$(BIN)/pytest --quiet -n 4 --dist loadgroup

test-all: check-generated lint typecheck ## every check, the slow and whole-corpus ones included
	$(BIN)/pytest --quiet -n 2 --dist loadgroup --everything

# Not in .venv, whose versions are those of requirements.lock. Without atheris the kept inputs are tried.
$(FUZZ_READY): tests/fuzz/requirements.lock | $(READY)
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary :all: --require-hashes --target $(FUZZ_PACKAGES) -r $<
	@mkdir -p $(FUZZ_PACKAGES) && touch $@

fuzz: $(FUZZ_READY) ## look for inputs that break a property: models step by step, then atheris (FUZZ_SECONDS=20 for each target)
	$(BIN)/pytest --quiet -n 2 --everything tests/fuzz
	PYTHONPATH=$(FUZZ_PACKAGES) $(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS)

mutants: $(READY) ## change our code in small ways (a fixed sample), and print the changes that no test notices
	$(BIN)/python -m tests.mutants

corpus: $(READY) ## all shared specs generated, imported, called and type-checked, as a table (half an hour)
	$(BIN)/python -m tests.corpus.report

generate: $(READY) ## make generated/ from the specs of the built-in tools
	$(BIN)/toolkit generate
	$(BIN)/toolkit generate --project tests/downstream

check-generated: $(READY) ## fail with a diff if generated/ differs from what the specs generate
	$(BIN)/toolkit check
	$(BIN)/toolkit check --project tests/downstream

typecheck: $(READY) ## mypy --strict over all our code
	$(BIN)/mypy $(CHECKED)

lint: $(READY) ## ruff over our code, toolkit lint over our specs
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .
	$(BIN)/toolkit lint

bench: $(BENCH_READY) ## what calls, imports, generation, commands and searches cost, next to the peers (minutes)
	$(BENCH) --json $(BENCH_RUN) --plots $(dir $(BENCH_RUN))

bench-check: $(BENCH_READY) ## measure, and fail if a ratio got worse than the baseline
	$(BENCH) --json $(BENCH_RUN) --check

bench-keep: $(BENCH_READY) ## save the last benchmark run as the baseline: baseline.json, docs/speed.md, its plots, docs/comparison.md
	$(BENCH) --from $(BENCH_RUN) --keep

stress: $(READY) ## an hour's worth of calls, kills and processes at once: what is lost and leaked, into docs/reliability.md (minutes)
	$(BIN)/python -m benchmarks.stress --keep

docs: $(READY) ## build the site into build/site, and run every example in README, docs and docstrings
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --config-file docs/site/mkdocs.yml
	$(BIN)/pytest --quiet tests/docs

lock: $(READY) ## choose versions again and write requirements.lock and those of benchmarks and tests/fuzz
	$(COMPILE) --group dev -o requirements.lock pyproject.toml
	$(COMPILE) --group bench -o benchmarks/requirements.lock pyproject.toml
	$(subst --extra codegen,,$(COMPILE)) --group pyproject.toml:fuzz -o tests/fuzz/requirements.lock
