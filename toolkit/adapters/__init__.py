"""Adapters between the neutral format and each provider's; one folder per provider, the same names in each."""
