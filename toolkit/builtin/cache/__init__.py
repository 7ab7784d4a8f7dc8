"""Tools that read outputs which were too long to be shown as a whole."""
