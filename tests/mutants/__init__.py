"""Mutation testing: small changes of our code that a test should notice. `make mutants` runs a sample."""
