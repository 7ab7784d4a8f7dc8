"""Requests and responses: bodies with a limit, errors as sentences, the files of the page, and their headers."""
