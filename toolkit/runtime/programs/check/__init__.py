"""The type check of a program: one module for the checker, a warm checker in the sandbox, and plain sentences."""
