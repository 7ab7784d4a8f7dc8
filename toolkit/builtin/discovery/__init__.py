"""Tools about the tools: for toolkits with more of them than a prompt should hold."""
