"""``python -m toolkit.codegen``: the same command line as ``toolkit``."""

from toolkit.cli.app import main

main()
