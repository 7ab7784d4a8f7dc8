"""Tools that read cached outputs that were too long to show as a whole."""
