"""Compares a published commit, as the destination's readers read it, with its sources.

``verify`` proves that every source can be restored from its output. That does not prove what a
reader sees: a row that was mistaken for a header, and dropped, is restored from the manifest. Here
the records of the output are compared with those of the originals, as restored from the manifest,
and of the sources themselves while they exist, with the readers of ``second_reading``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from compactor.errors import IntegrityError, ObjectMissing, UnreadableSource
from compactor.log.entries import Commit, Output
from compactor.log.manifest import ManifestRow
from compactor.model import Format
from compactor.outputs import slices
from compactor.outputs.second_pass import declared_by
from compactor.ports import ObjectStore
from compactor.second_reading import (
    HEADED,
    WHOLE,
    Declared,
    Kind,
    NotReadable,
    Reading,
    Seen,
    Tally,
    header_of,
    judge,
    plain_pieces,
    read,
)
from compactor.settings.settings import Settings
from compactor.verification.originals import JUDGED_BYTES, Originals, head_of, seen_in

ROWS_DROPPED = "rows_dropped"
RECORDS_GLUED = "records_glued"
RECORDS_DIFFER = "records_differ"

_DOCUMENTS = (Format.CLOUDTRAIL, Format.JSON_ARRAY)
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Finding:
    """An output in which a reader does not see the records of its sources.

    Attributes:
        sequence: the commit's sequence in the log of its partition.
        output_key: the output's key.
        kind: ``rows_dropped`` (first rows were left out as headers, but are not certain to be
            headers), ``records_glued`` (records of two sources, or two values, run into each other)
            or ``records_differ``.
        sources: keys of the sources concerned.
        records_in: number of records in all sources of the commit.
        records_out: number of records that a reader of the output sees.
        detail: how it was read and what is wrong, in words.
    """

    sequence: int
    output_key: str
    kind: str
    sources: tuple[str, ...]
    records_in: int
    records_out: int
    detail: str


def examine(commit: Commit, store: ObjectStore, settings: Settings) -> tuple[Finding, ...]:
    """Return where readers of a commit's output see something other than readers of its sources.

    The output is read twice, plus once for each additional kind of reader. Memory: a digest and two
    counts for each source, plus the largest record; formats read as a whole are held whole.

    Args:
        commit: the commit to examine. Outputs of rows and copies of one source give no finding.
        store: the store that holds output and sources; sources that still exist are read.
        settings: formats that these declare are trusted.

    Raises:
        IntegrityError: the output is gone, or cannot be read: as ``check_commit`` says.
    """
    output = commit.output
    if output is None or output.copied or output.columnar is not None:
        return ()
    declared = replace(declared_by(settings), table=output.table)
    examination = _Examination(commit, output, store, declared)
    try:
        return tuple(examination.findings())
    except ObjectMissing as error:
        raise IntegrityError(f"s3://{output.bucket}/{output.key} is gone") from error
    except (NotReadable, UnreadableSource) as error:
        raise IntegrityError(f"s3://{output.bucket}/{output.key}: {error}") from error


class _Examination:
    def __init__(
        self, commit: Commit, output: Output, store: ObjectStore, declared: Declared
    ) -> None:
        self._commit = commit
        self._output = output
        self._store = store
        self._rows = commit.rows
        self._judged: dict[int, Reading] = {}
        facts = [row.facts for row in commit.rows if row.facts is not None]
        unchanged = not any(
            one.appended or one.edits or one.newlines_stand_for is not None for one in facts
        )
        # How the run wrote records shows in the changes it made to the sources.
        self._declared = replace(
            declared,
            document_lines=output.format in _DOCUMENTS and any(one.appended for one in facts),
        )
        self._copied = output.format is Format.UNDELIMITED_JSON and unchanged

    def findings(self) -> Iterator[Finding]:
        judged, originals = self._judge_all()
        for reading in judged:
            found = originals.get(reading) if len(judged) == 1 else None
            if found is None:
                found = self._read_originals(reading)
            yield from self._compare(reading, found)
            yield from self._compare_sources(reading, found)

    def _judge_all(self) -> tuple[list[Reading], dict[Reading, Originals]]:
        """Return the readings of all sources and, if known, what each saw in its own sources."""
        found: dict[Reading, Originals] = {}
        for number, row, pieces in self._originals():
            head = head_of(pieces)
            if not head.removeprefix(_BOM):
                continue
            complete = len(head) < JUDGED_BYTES
            reading = judge(head, row.source.key, self._declared, complete=complete)
            seen = read(reading, chain((head,), pieces))
            found.setdefault(reading, Originals()).add(number, seen)
            if reading.kind is Kind.TRAIL and seen.fault and not complete:
                # The head does not include what follows the records.
                reading = replace(reading, kind=Kind.LIST)
            self._judged[number] = reading
        readings = list(dict.fromkeys(self._judged.values()))
        return readings, found if readings == list(found) else {}

    def _read_originals(self, reading: Reading) -> Originals:
        found = Originals()
        for number, _, pieces in self._originals():
            head = head_of(pieces)
            if head.removeprefix(_BOM):
                found.add(number, read(reading, chain((head,), pieces)))
        return found

    def _read_lone(self, reading: Reading) -> Seen:
        """Read the concatenated originals, of which only one has content, and a newline."""
        pieces = (piece for _, _, pieces in self._originals() for piece in pieces)
        return read(reading, chain(pieces, (b"\n",)))

    def _originals(self) -> Iterator[tuple[int, ManifestRow, Iterator[bytes]]]:
        stored = self._store.open(self._output.bucket, self._output.key)
        for number, (row, pieces) in enumerate(slices.restored(self._commit, stored)):
            yield number, row, pieces
            for _ in pieces:
                continue

    def _compare(self, reading: Reading, originals: Originals) -> Iterator[Finding]:
        header = header_of(originals.seen, reading, self._declared)
        expected = originals.total(header)
        strict = reading.as_output(
            document_lines=self._declared.document_lines,
            stream_as_is=self._copied,
        )
        seen = self._read_output(strict)
        alone = len(originals.tallies) == 1
        if alone and not seen.glued and strict.kind is Kind.STRICT_JSON_LINES:
            # One source without glued lines: read the output like the source, so that no less is
            # seen.
            seen = self._read_output(reading)
        records = seen.without(header)
        what = f"read as {reading.kind.value}"
        if alone and records != expected and reading.kind is not Kind.BINARY:
            # The source's missing last newline may lie in an open field.
            expected = self._read_lone(reading).without(header)
        if records != expected or (seen.fault and not alone):
            fault = f", {seen.fault}" if seen.fault else ""
            kind, keys = self._fault(reading, originals, header, records.records - expected.records)
            yield self._finding(kind, keys, (expected, records), what + fault)
        yield from self._open_ends(reading, originals, (expected, records))

    def _read_output(self, reading: Reading) -> Seen:
        return read(reading, plain_pieces(self._store.open(self._output.bucket, self._output.key)))

    def _fault(
        self,
        reading: Reading,
        originals: Originals,
        header: tuple[str, ...] | None,
        more: int,
    ) -> tuple[str, tuple[str, ...]]:
        """Return the kind of fault, and the keys of the sources concerned."""
        dropped = [
            row.source.key
            for row in self._rows
            if row.facts is not None and row.facts.dropped_prefix.removeprefix(_BOM)
        ]
        if reading.kind in HEADED and header is None and dropped and more < 0:
            # The first one's row stands at the start of the output.
            return ROWS_DROPPED, tuple(dropped[1:] or dropped)
        if reading.kind in WHOLE or reading.kind is Kind.JSON_STREAM or more < 0:
            return RECORDS_GLUED, self._keys(originals.unfinished) or self._all_keys()
        return RECORDS_DIFFER, self._all_keys()

    def _open_ends(
        self, reading: Reading, originals: Originals, counts: tuple[Tally, Tally]
    ) -> Iterator[Finding]:
        last = max(originals.tallies, default=0)
        followed = {
            number: how
            for number, how in originals.unfinished.items()
            if number != last and self._judged.get(number) == reading
        }
        if followed:
            how = ", ".join(sorted(set(followed.values()))[:3])
            detail = f"what ends {how} is followed by another source"
            yield self._finding(RECORDS_GLUED, self._keys(followed), counts, detail)

    def _compare_sources(self, reading: Reading, originals: Originals) -> Iterator[Finding]:
        """Compare the sources that still exist, decompressed again, with the restored originals."""
        numbers = {row.source.identity: number for number, row in enumerate(self._rows)}
        wanted = [self._rows[number].source for number in originals.tallies]
        for body in self._store.read_sources(wanted):
            seen = seen_in(body, reading)
            if seen is None:
                continue
            expected = originals.tallies[numbers[body.source.identity]]
            if (seen.records, seen.first) != expected:
                counts = (seen.records, expected[0])
                detail = "the source holds other records than what is given back for it"
                yield self._finding(RECORDS_DIFFER, (body.source.key,), counts, detail)

    def _finding(
        self, kind: str, keys: tuple[str, ...], counts: tuple[Tally, Tally], detail: str
    ) -> Finding:
        records_in, records_out = (one.records for one in counts)
        sequence, key = self._commit.sequence, self._output.key
        return Finding(sequence, key, kind, keys, records_in, records_out, detail)

    def _keys(self, numbers: Sequence[int] | dict[int, str]) -> tuple[str, ...]:
        return tuple(self._rows[number].source.key for number in numbers)

    def _all_keys(self) -> tuple[str, ...]:
        return tuple(row.source.key for row in self._rows)
