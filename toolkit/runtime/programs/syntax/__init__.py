"""What the syntax tree of a program says, before its types are checked."""
