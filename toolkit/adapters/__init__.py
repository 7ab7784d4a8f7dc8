"""The neutral format and what each provider speaks, both ways; one folder a provider, the same names in each."""
