"""What the page shows, as JSON: tools, verdicts, results, the audit log, and what the tools cost in tokens."""
