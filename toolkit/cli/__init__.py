"""The command line ``toolkit``; ``toolkit.cli.app`` lists the commands."""
