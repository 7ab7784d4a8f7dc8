"""Fuzzing: targets that take any bytes, the inputs kept for them, and models that are compared step by step."""
