"""Programs that a model writes against the typed tools: judged before they run, and run in the sandbox.

parse -> gate -> type check -> policy on the tools that it names -> run; each call takes the ordinary call path.
"""
