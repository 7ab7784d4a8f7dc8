"""Calls that the page starts: their events, their approvals, and their end."""
