"""How a call runs: catalogs and packs, contexts, the call path, outputs, the audit log."""
