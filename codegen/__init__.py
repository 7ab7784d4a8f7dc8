"""Build time: tool specs in, a statically typed package out. Nothing here is imported when tools run."""
