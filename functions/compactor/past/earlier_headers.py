"""Headers of CSV and TSV outputs that do not say how they are written, as those of today do.

Earlier versions left first records out as headers and recorded no decision: whether they were any
is judged by what stands below them in all their sources.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from compactor.errors import IntegrityError, ObjectMissing, UnreadableSource
from compactor.log.entries import Commit, Output
from compactor.log.old_rules import dropped_headers
from compactor.model import TableDialect
from compactor.outputs import slices
from compactor.outputs.first_lines import FirstLine, judge
from compactor.ports import ObjectStore

_DELIMITERS = (b",", b";", b"\t", b"|")
_ROWS_OF_A_SOURCE = 5
_MOST_ROWS = 1_000
_HEAD_BYTES = 1 << 20


def earlier_table(commit: Commit, output: Output, store: ObjectStore) -> TableDialect | None:
    """How the table of an output without a decision is written; None where nothing was left out.

    Raises:
        IntegrityError: the output is gone or damaged.
    """
    left_out = dropped_headers(commit)
    if not left_out:
        return None
    verdicts = {judged(commit, output, line, store) for line in left_out}
    return TableDialect("", header=verdicts == {FirstLine.HEADER})


def judged(commit: Commit, output: Output, line: bytes, store: ObjectStore) -> FirstLine:
    """What a line is that was left out of sources of an output.

    Raises:
        IntegrityError: the output is gone or damaged.
    """
    below = _Below(line)
    try:
        stored = store.open(output.bucket, output.key)
        for row, pieces in slices.restored(commit, stored):
            dropped = len(row.facts.dropped_prefix) if row.facts is not None else 0
            below.read(dropped, slices.checked(row, pieces, commit))
    except ObjectMissing:
        raise IntegrityError(f"s3://{output.bucket}/{output.key} is gone") from None
    except UnreadableSource as error:
        raise IntegrityError(f"s3://{output.bucket}/{output.key}: {error}") from error
    return judge(line, max(_DELIMITERS, key=line.count), below.rows, elsewhere=below.elsewhere)


@dataclass(slots=True)
class _Below:
    """What stands below one first line in all the sources that begin with it."""

    line: bytes
    rows: list[bytes] = field(default_factory=list)
    elsewhere: bool = False

    def read(self, dropped: int, pieces: Iterable[bytes]) -> None:
        """Go through one source; the first bytes of it were dropped."""
        needles = (b"\n%b\n" % self.line, b"\n%b\r\n" % self.line)
        held, head = b"\n", b""
        for piece in pieces:
            body, dropped = piece[dropped:], max(0, dropped - len(piece))
            window = held + body
            self.elsewhere = self.elsewhere or any(needle in window for needle in needles)
            held = window[-len(needles[1]) :]
            head += body[: max(0, _HEAD_BYTES - len(head))]
        self.elsewhere = self.elsewhere or held.endswith(b"\n" + self.line)
        if len(self.rows) < _MOST_ROWS:
            lines = head.split(b"\n", _ROWS_OF_A_SOURCE)[:_ROWS_OF_A_SOURCE]
            self.rows += [row.removesuffix(b"\r") for row in lines if row.strip()]
