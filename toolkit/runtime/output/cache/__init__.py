"""The tool output cache: outputs kept whole in the private state directory, so that what models read can be cut."""
