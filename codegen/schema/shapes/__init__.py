"""The flat form of one schema, a module for each keyword that decides it; ``flattener`` chooses."""
