"""The toolkit as an MCP server, over the official SDK. Every call takes the path of any call: policy, validation, sandbox."""
