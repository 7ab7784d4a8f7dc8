"""``toolkit tools | describe | invoke``: look at the tools of a generated package, or run one of them."""
