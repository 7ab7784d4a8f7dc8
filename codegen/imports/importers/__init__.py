"""One importer for each kind of source: what it finds becomes the tools of a spec file."""
