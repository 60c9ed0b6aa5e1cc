"""Compares the records of a published output with those of its sources, as DuckDB reads both.

``verify`` proves that every source can be restored from its output. That does not prove what a
reader sees: a row that was taken for a header, and dropped, is restored from the manifest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from compactor.log.entries import Commit
from compactor.model import Format
from compactor.ports import ObjectStore
from compactor.sizes import plural
from compactor_cli.plain_files import OUTPUT, PARQUET, NotCompared, PlainFiles
from compactor_cli.record_digests import RecordDigests, Unreadable

_COUNTS = "SELECT count(*) FILTER (file >= 0), count(*) FILTER (file < 0) FROM records"
_LOST_AND_ADDED = """
    SELECT coalesce(sum(greatest(sources - outputs, 0)), 0)::BIGINT,
        coalesce(sum(greatest(outputs - sources, 0)), 0)::BIGINT
    FROM differing
"""
_LOST_FROM = """
    SELECT DISTINCT file FROM records JOIN differing USING (digest)
    WHERE file >= 0 AND sources > outputs ORDER BY file
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """An output in which a reader does not see the records of its sources.

    Attributes:
        sequence: the commit's sequence in the log of its partition.
        output_key: the output's key.
        kind: ``records_differ``.
        sources: keys of the sources concerned.
        records_in: number of records in all sources of the commit.
        records_out: number of records that a reader of the output sees.
        detail: what differs, in words.
    """

    sequence: int
    output_key: str
    kind: str
    sources: tuple[str, ...]
    records_in: int
    records_out: int
    detail: str


def compare(commit: Commit, store: ObjectStore) -> Finding | None:
    """Compare the records of a commit's output with those of its sources, as multisets.

    Sources that changed or are gone are restored from the output. Of JSON that became rows, only
    the numbers of records are compared. Copies of one source are not read. Disk: the plain bytes
    of output and sources, and 12 bytes for each record.

    Raises:
        NotCompared: the sources cannot be read, or not by DuckDB.
        IntegrityError: the output is gone, or does not decompress.
    """
    output = commit.output
    if output is None or output.copied:
        return None
    with TemporaryDirectory(prefix="compactor-deep-") as home:
        files = PlainFiles(commit, output, Path(home))
        files.fetch(store)
        with duckdb.connect(f"{home}/records.db") as connection:
            return _Comparison(files, RecordDigests(files, connection)).finding()


class _Comparison:
    def __init__(self, files: PlainFiles, digests: RecordDigests) -> None:
        self._files = files
        self._digests = digests
        self._rows = files.commit.rows

    def finding(self) -> Finding | None:
        files = self._files
        if files.output.format is Format.PARQUET and not all(
            files.head(number, len(PARQUET)) == PARQUET for number in files.sources
        ):
            return self._compare_counts()
        try:
            beside = self._digests.read(files.sources)
        except Unreadable as error:
            raise NotCompared(self._with_keys(error)) from error
        try:
            differs = self._digests.read([OUTPUT]) != beside
        except Unreadable as error:
            return self._finding(f"DuckDB cannot read the output: {self._with_keys(error)}")
        if differs and beside:
            return self._finding("its header, or a field beside the records, is another one")
        ((lost, added),) = self._digests.query(_LOST_AND_ADDED)
        if not lost and not added:
            return None
        numbers = [number for (number,) in self._digests.query(_LOST_FROM)]
        detail = f"{plural(lost, 'record')} of sources not in it, {added:,} in it of no source"
        return self._finding(detail, numbers)

    def _compare_counts(self) -> Finding | None:
        """Compare how many records JSON sources have with how many of them became rows."""
        files, digests = self._files, self._digests
        if any(files.head(number, 1) not in (b"", b"{", b"[") for number in files.sources):
            raise NotCompared("rows of CSV, TSV and logs are not compared")
        try:
            digests.read_json(files.sources)
        except Unreadable as error:
            raise NotCompared(self._with_keys(error)) from error
        counts = dict(digests.query("SELECT file, count(*) FROM records GROUP BY file"))
        placed = {n: row.facts.records for n, row in enumerate(self._rows) if row.facts}
        others = [n for n in files.sources if counts.get(n, 0) != placed.get(n)]
        columnar = files.output.columnar
        rows = digests.count_rows()
        if not others and rows + (columnar.dead if columnar else 0) == sum(counts.values()):
            return None
        return self._finding("another number of records became rows", others, rows)

    def _finding(
        self, detail: str, numbers: Sequence[int] = (), records_out: int | None = None
    ) -> Finding:
        ((sources, output),) = self._digests.query(_COUNTS)
        keys = tuple(self._rows[n].source.key for n in numbers or range(len(self._rows)))
        out = output if records_out is None else records_out
        commit, key = self._files.commit, self._files.output.key
        return Finding(commit.sequence, key, "records_differ", keys, sources, out, detail)

    def _with_keys(self, error: Unreadable) -> str:
        """Return the message with the keys of sources instead of paths of files."""
        home = re.escape(str(self._files.path(0).parent))
        return re.sub(rf"{home}/(\d+)", lambda n: self._rows[int(n[1])].source.key, str(error))
