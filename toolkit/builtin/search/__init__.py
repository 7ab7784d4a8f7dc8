"""Finding files and what is in them, and the parts every tool that walks a directory shares."""
