"""Faults of the system: the n-th system call of an operation fails, for every n."""
