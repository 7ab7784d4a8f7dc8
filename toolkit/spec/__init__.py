"""Tool specs: YAML or JSON files in, ``ToolSpec`` out, every mistake as ``message @ file:pointer``."""
