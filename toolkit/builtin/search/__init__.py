"""``glob`` and ``grep``, and the directory walk that other tools share."""
