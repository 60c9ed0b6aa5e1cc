"""Generated parts of documents and modules, delimited by markers."""

from __future__ import annotations


def replace_between(text: str, begin: str, end: str, made: str) -> str:
    """Return a text with ``made`` between its markers, which are kept.

    Raises:
        ValueError: a marker is missing.
    """
    before, found_begin, rest = text.partition(begin)
    _, found_end, after = rest.partition(end)
    if not found_begin or not found_end:
        raise ValueError(f"there is no {begin.strip()} … {end.strip()}")
    return f"{before}{begin}{made}{end}{after}"
