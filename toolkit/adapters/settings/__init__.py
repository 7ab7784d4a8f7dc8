"""Settings of a query that several drivers have in common: structured outputs, and OpenAI's prompt cache."""
