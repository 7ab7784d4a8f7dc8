"""Messages made of lists of blocks: what Anthropic and Bedrock have in common."""
