"""What is served: a generated package, a workspace, and a policy from a preset or a file."""
