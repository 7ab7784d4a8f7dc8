"""The laws of stores as classes of tests: one for each interface, for the stores of this package and for your own."""
