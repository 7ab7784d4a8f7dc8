# Every target sets up what it needs. `make help` lists them.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CHECKED := toolkit tests examples benchmarks

.DEFAULT_GOAL := help
.PHONY: help setup run quick test test-all corpus generate check-generated typecheck lint bench docs lock

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## everything into .venv, versions as locked

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

run: $(READY) ## the main job: generate, type-check the sample agent, run it in a sandboxed workspace
	@$(BIN)/python -m examples.main_job

quick: $(READY) ## the inner loop, under a minute: ruff, mypy's daemon, toolkit check, the fast tests
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .
	$(BIN)/dmypy run --timeout 1800 -- $(CHECKED)
	$(BIN)/toolkit check
	$(BIN)/pytest --quiet -n 2 --quick -m "not slow"

# One process more than cores: some tests wait for what they started to end.
test: check-generated lint typecheck ## every check
	$(BIN)/pytest --quiet -n 3 --dist loadgroup

test-all: check-generated lint typecheck ## every check, the slow and whole-corpus ones included
	$(BIN)/pytest --quiet -n 2 --dist loadgroup --everything

corpus: $(READY) ## all shared specs generated, imported, called and type-checked, as a table (half an hour)
	$(BIN)/python -m tests.corpus.report

generate: $(READY) ## make generated/ from the specs of the built-in tools
	$(BIN)/toolkit generate
	$(BIN)/toolkit generate --project tests/downstream

check-generated: $(READY) ## fail with a diff if generated/ is not what the specs give
	$(BIN)/toolkit check
	$(BIN)/toolkit check --project tests/downstream

typecheck: $(READY) ## mypy --strict over all our code
	$(BIN)/mypy $(CHECKED)

lint: $(READY) ## ruff over our code, toolkit lint over our specs
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .
	$(BIN)/toolkit lint

bench: $(READY) ## what a call, an import and a generation cost, as ratios
	$(BIN)/python -m benchmarks

docs: $(READY) ## run every example in README and docstrings
	$(BIN)/pytest --quiet tests/docs

lock: $(READY) ## choose versions again and write requirements.lock
	$(BIN)/uv pip compile --quiet --generate-hashes --universal --python-version 3.11 --no-header --group dev --extra codegen --upgrade -o requirements.lock pyproject.toml
