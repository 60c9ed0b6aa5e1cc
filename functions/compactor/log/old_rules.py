"""Commits of the version before, which took any first line without a number or date for a header.

Where several sources began with one and the same row, it kept that row once. Such commits can be
told by the rules they name, and by what their manifest says was left out.
"""

from __future__ import annotations

from compactor.log.entries import RULES, Commit
from compactor.model import Format

_BOM = b"\xef\xbb\xbf"
_ENCODINGS = (".gz", ".gzip", ".zst", ".zstd")
_DELIMITED = (Format.CSV, Format.TSV)


def dropped_headers(commit: Commit) -> frozenset[bytes]:
    """First lines of delimited sources that are in the manifest alone, without BOM and line end.

    All sources of one output have the same one; it stands once at the output's beginning.
    """
    if commit.output is None or commit.output.format not in _DELIMITED:
        return frozenset()
    dropped = {row.facts.dropped_prefix for row in commit.rows if row.facts is not None}
    return frozenset(line_of(prefix) for prefix in dropped) - {b""}


def line_of(prefix: bytes) -> bytes:
    """What was left out of a source's beginning, without BOM and line end."""
    return prefix.removeprefix(_BOM).removesuffix(b"\n").removesuffix(b"\r")


def is_doubtful(commit: Commit) -> bool:
    """True when a first line was taken for a header by the rules of the version before.

    Of outputs that hold rows the manifest does not say so: there the keys of the sources do, for
    they decided.
    """
    if commit.rules >= RULES or commit.output is None:
        return False
    if commit.output.columnar is not None:
        return any(_is_delimited_by_name(row.source.key) for row in commit.rows)
    return bool(dropped_headers(commit))


def _is_delimited_by_name(key: str) -> bool:
    name = key.lower()
    for encoding in _ENCODINGS:
        name = name.removesuffix(encoding)
    return name.endswith((".csv", ".tsv"))
