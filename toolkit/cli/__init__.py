"""The command line ``toolkit``; ``toolkit.cli.commands`` lists the commands."""
