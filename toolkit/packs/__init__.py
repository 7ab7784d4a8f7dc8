"""Packs that run imported tools: each calls the server or service its specs came from."""
