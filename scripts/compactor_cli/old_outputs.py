"""Outputs of the version before, read again: were the first lines that it dropped headers?

And do readers of the output see what readers of the sources see? That is asked of
:mod:`compactor.past.deep`; whether a first line is certainly a row, and so was lost, only here.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from compactor.log.entries import RULES, Commit, Output
from compactor.log.manifest import ManifestRow
from compactor.log.old_rules import dropped_headers, is_doubtful, line_of
from compactor.outputs.first_lines import FirstLine
from compactor.past import deep
from compactor.past.earlier_headers import judged
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor.shown import shown_bytes

ROWS_DROPPED, UNDECIDED = deep.ROWS_DROPPED, "first_line_undecided"
_SHOWN_BYTES = 60


class Finding(NamedTuple):
    """What is wrong with one output, or cannot be told.

    Attributes:
        kind: what became of its records.
        sources: how many are concerned.
        records_in: records of its sources.
        records_out: those that a reader of the output finds.
        detail: one line for a person.
    """

    sequence: int
    output_key: str
    kind: str
    sources: int
    records_in: int | None
    records_out: int | None
    detail: str


def examine(commit: Commit, store: ObjectStore, settings: Settings) -> tuple[Finding, ...]:
    """What is wrong with an output of older rules; nothing for one of these rules.

    Raises:
        IntegrityError: the output is gone or damaged.
    """
    if commit.rules >= RULES or commit.output is None:
        return ()
    return _first_lines(commit, store) or _records(commit, store, settings)


def _records(commit: Commit, store: ObjectStore, settings: Settings) -> tuple[Finding, ...]:
    """What readers of the output do not see as readers of the sources do."""
    return tuple(
        Finding(
            found.sequence,
            found.output_key,
            # A first line of which nobody is certain that it is a row may be a header after all.
            UNDECIDED if found.kind == deep.ROWS_DROPPED else found.kind,
            len(found.sources),
            found.records_in,
            found.records_out,
            found.detail,
        )
        for found in deep.examine(commit, store, settings)
    )


def _first_lines(commit: Commit, store: ObjectStore) -> tuple[Finding, ...]:
    output = commit.output
    if output is None or not is_doubtful(commit):
        return ()
    if output.columnar is not None:
        detail = "its rows were named after the first lines of CSV or TSV sources"
        return (_finding(commit, output, UNDECIDED, len(commit.rows), detail),)
    dropping = sum(1 for row in commit.rows if _line_of_row(row))
    if dropping < 2:
        # The one line that was left out of its source stands at the beginning of the output.
        return ()
    found: list[Finding] = []
    for line in sorted(dropped_headers(commit)):
        verdict = judged(commit, output, line, store)
        if verdict is not FirstLine.HEADER:
            kind = ROWS_DROPPED if verdict is FirstLine.ROW else UNDECIDED
            shown = shown_bytes(line, _SHOWN_BYTES)
            detail = f"{dropping:,} sources begin with {shown}, and it was kept once"
            found.append(_finding(commit, output, kind, dropping, detail))
    return tuple(found)


def lost_rows(commit: Commit) -> Iterator[bytes]:
    """Lines that are in the manifest alone: of each source but the one whose line was kept."""
    lines = (_line_of_row(row) for row in commit.rows)
    return islice((line + b"\n" for line in lines if line), 1, None)


def _finding(commit: Commit, output: Output, kind: str, sources: int, detail: str) -> Finding:
    rows = None if output.records is None else output.records + 1
    before = None if rows is None else rows + sources - 1
    if output.columnar is not None:
        rows = before = None
    return Finding(commit.sequence, output.key, kind, sources, before, rows, detail)


def _line_of_row(row: ManifestRow) -> bytes:
    return b"" if row.facts is None else line_of(row.facts.dropped_prefix)
