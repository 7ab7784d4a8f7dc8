"""``make stress``: load, leaks, lost changes and kills, counted. ``docs/reliability.md`` shows the table."""
