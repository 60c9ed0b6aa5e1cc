"""Downloads the objects that a query reads, of a destination or of a source.

Outputs are checked against the checksum and size in their commits, and sources are read with
If-Match. So a query sees no record twice and none in part, whatever runs and clean-ups do at the
same time; an object that vanished ends the query with an error.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from compactor.errors import IntegrityError, ObjectMissing
from compactor.log.entries import Commit, Output
from compactor.log.log_reader import StoredLog
from compactor.model import Compression, Format, SourceObject
from compactor.outputs.restore import Found, restore
from compactor.ports import ObjectStore, SourceBody
from compactor.settings.uris import S3Uri
from compactor_cli.disk import naming

_ENDS = {Compression.NONE: "", Compression.GZIP: ".gz", Compression.ZSTD: ".zst"}
_NAMED = re.compile(r"\.(parquet|csv|tsv)(?:\.(?:gz|gzip|zst|zstd))?\Z", re.IGNORECASE)
_HIVE = re.compile(r"([^/=]+)=([^/]*)")
LINES, JSON, FLOW, COMMENTED = "lines", "json", "flow", "commented"
#: How DuckDB reads each format.
KINDS: Mapping[Format, str] = {
    Format.JSON_LINES: JSON,
    Format.UNDELIMITED_JSON: JSON,
    Format.CLOUDTRAIL: JSON,
    Format.JSON_LIST: JSON,
    Format.JSON_ARRAY: JSON,
    Format.CSV: "csv",
    Format.TSV: "tsv",
    Format.PARQUET: "parquet",
    Format.VPC_FLOW: FLOW,
    Format.CLOUDFRONT: COMMENTED,
    Format.TEXT: LINES,
}


@dataclass(frozen=True, slots=True)
class Staged:
    """One object as a local file.

    Attributes:
        file: where its bytes are.
        kind: ``csv``, ``tsv``, ``parquet``, ``json``, ``flow`` for VPC flow logs,
            ``commented`` for lines with comments, or ``lines`` for all other text.
        path: of the partition.
        source_key: of the source of these records; None for an output.
    """

    file: Path
    kind: str
    path: str
    source_key: str | None = None

    @property
    def columns(self) -> dict[str, str]:
        """The segments of its path of the form ``name=value``."""
        return {found[1]: found[2] for found in _HIVE.finditer(self.path)}


class Staging:
    """Downloads objects into a directory.

    Args:
        store: where they are.
        directory: for the files; exclusively used by this object.
    """

    def __init__(self, store: ObjectStore, directory: Path) -> None:
        self._store = store
        self._directory = directory
        self._count = 0
        self.bytes = 0

    def outputs(self, log: StoredLog, commits: Iterable[Commit]) -> Iterator[Staged]:
        """Download the outputs of a partition.

        Raises:
            IntegrityError: one is missing, or differs from its commit.
        """
        for commit in commits:
            output = commit.output
            if output is None:
                continue
            kind = _kind_of(output.key, output.format)
            file = self._new(kind, _ENDS[output.compression] if kind != "parquet" else "")
            self._write(file, self._checked(output))
            yield Staged(file, kind, log.path)

    def originals(self, log: StoredLog, commits: Iterable[Commit]) -> Iterator[Staged]:
        """Download the sources of a partition, cut out of its outputs by the manifests.

        Raises:
            IntegrityError: an output is missing or damaged.
            InvalidInput: an output holds rows, not the bytes of its sources.
        """
        for commit in commits:
            format = commit.output.format if commit.output is not None else None
            for row, pieces in restore(Found(commit, commit.rows), self._store):
                kind = _kind_of(row.source.key, format)
                content = iter(pieces)
                head = next(content, b"")
                file = self._new(kind, _end_of(head))
                self._write(file, _after(head, content))
                yield Staged(file, kind, log.path, row.source.key)

    def sources(self, root: S3Uri, given: Sequence[SourceObject]) -> Iterator[Staged]:
        """Download source objects.

        Raises:
            SourceChanged: one has changed since it was listed.
            UnreadableSource: one cannot be read, or is archived.
        """
        kinds = [_kind_of(one.key, None) for one in given]
        for one, kind, file in zip(given, kinds, self.files(given, kinds), strict=True):
            path = one.key.removeprefix(root.prefix).rpartition("/")[0]
            yield Staged(file, kind, f"{path}/" if path else "", one.key)

    def files(self, given: Sequence[SourceObject], kinds: Sequence[str]) -> Iterator[Path]:
        """Download listed objects, in their order, as files of these kinds.

        Raises:
            SourceChanged: one has changed since it was listed.
            UnreadableSource: one cannot be read, or is archived.
        """
        for body, kind in zip(self._store.read_sources(given), kinds, strict=True):
            if body.error is not None:
                raise body.error
            content = _pieces(body)
            head = next(content, b"")
            file = self._new(kind, _end_of(head) if kind != "parquet" else "")
            self._write(file, _after(head, content))
            yield file

    def _new(self, kind: str, end: str) -> Path:
        self._count += 1
        return self._directory / f"{self._count:08d}.{kind}{end}"

    def _write(self, file: Path, pieces: Iterable[bytes]) -> None:
        with naming(file), file.open("xb") as stream:
            for piece in pieces:
                self.bytes += stream.write(piece)

    def _checked(self, output: Output) -> Iterator[bytes]:
        size = crc32 = 0
        where = f"s3://{output.bucket}/{output.key}"
        try:
            for piece in self._store.open(output.bucket, output.key):
                size += len(piece)
                crc32 = zlib.crc32(piece, crc32)
                yield piece
        except ObjectMissing:
            later = "a run in progress or the next run publishes it; try again"
            raise IntegrityError(f"{where} is committed but not yet published: {later}") from None
        if size != output.size or output.crc32 not in (None, crc32):
            raise IntegrityError(f"{where} differs from its commit")


def _pieces(body: SourceBody) -> Iterator[bytes]:
    if body.chunks is not None:
        yield from body.chunks()
    else:
        yield body.content or b""


def _after(head: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield head
    yield from rest


def _kind_of(key: str, format: Format | None) -> str:
    if format is not None:
        return KINDS[format]
    named = _NAMED.search(key)
    if named:
        return named[1].lower()
    return JSON if re.search(r"\.(?:json|jsonl|ndjson)\b", key, re.IGNORECASE) else LINES


def _end_of(head: bytes) -> str:
    """Return the file suffix by which a reader decompresses these bytes."""
    if head.startswith(b"\x1f\x8b"):
        return ".gz"
    return ".zst" if head.startswith(b"\x28\xb5\x2f\xfd") else ""
