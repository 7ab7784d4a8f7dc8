"""The types of nested objects have names, which a package exports."""

from acme.generated import AcmeToolkit, GrepOutputMatch, LibraryLendBookArgsReader


def exports_nested_types(toolkit: AcmeToolkit, matches: list[GrepOutputMatch]) -> None:
    matches += toolkit.tools.grep(pattern="x").matches
    reader: LibraryLendBookArgsReader = {"name": "x"}
    toolkit.tools.library_lend_book(id=1, reader=reader)
    wrong: LibraryLendBookArgsReader = {"nam": "x"}  # error
    del wrong
