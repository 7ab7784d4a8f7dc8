"""``toolkit init``: a new project from the files in ``template``."""
