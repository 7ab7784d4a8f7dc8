"""HTTP for one person's tools: loopback first, a token, and no way in for foreign pages."""
