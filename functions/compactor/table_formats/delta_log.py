"""Replays the log of a Delta table to find the files of its last version.

delta-rs (1.6) returns the number of rows in a deletion vector only by reading it, does not return
partition values as text, and does not fit into a Lambda function together with pyiceberg. So the
log is read here, by Delta's protocol ("Action Reconciliation", "Checkpoints"): one LIST, the newest
checkpoint, and each later version.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from compactor.decoding import decoder
from compactor.errors import IntegrityError, InvalidInput, ObjectMissing, TransientStoreError
from compactor.model import SourceObject
from compactor.ports import ObjectStore
from compactor.settings.uris import S3Uri
from compactor.table_formats.delta_actions import (
    Add,
    CommitInfo,
    Line,
    Metadata,
    Protocol,
    Remove,
    lines_of_json,
    lines_of_parquet,
)

#: The directory of a table's log, below its location.
LOG = "_delta_log/"
_READERS = 16
_VERSION = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(
    r"(?P<version>\d{20})\.checkpoint"
    r"(?:\.(?P<part>\d{10})\.(?P<parts>\d{10})|\.(?P<id>[0-9a-f-]{36}))?\.(?P<kind>parquet|json)"
)
# Features of tables whose newest versions are kept by a catalog.
_ELSEWHERE = {"catalogManaged", "catalogOwned-preview", "coordinatedCommits-preview"}
# Reader features of Delta 4.2 (its TableFeature.scala) that do not change where files and rows are
# recorded here. Table redirection does.
_MOST_READER_VERSION = 3
_KNOWN = {
    "columnMapping",
    "deletionVectors",
    "geospatial",
    "timestampNtz",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "variantShredding",
    "variantShredding-preview",
    "variantType",
    "variantType-preview",
}
_VACUUM_BEGUN, _VACUUMED = "VACUUM START", "VACUUM END"
# Default of delta.deletedFileRetentionDuration, if nothing shows what a VACUUM kept.
_USUALLY_KEPT_MILLIS = 7 * 86_400_000


class DeltaFile(NamedTuple):
    """A data file. Only what is needed of its action: some actions have kilobytes of bounds.

    Attributes:
        size: in bytes.
        rows: number of rows, deleted ones included; None if the log does not have it.
        values: partition values by column; files of a partition share one object.
        changed: when it was added, UNIX seconds; None if the log does not have it.
        deleted: number of rows in its deletion vector; None if it has no vector.
    """

    size: int
    rows: int | None
    values: Mapping[str, str | None]
    changed: float | None
    deleted: int | None


class _Stats(msgspec.Struct, rename="camel"):
    num_records: int | None = None


_decode_stats = decoder(_Stats)


@dataclass(slots=True)
class DeltaState:
    """A table at its last version.

    Attributes:
        version: number of the last version.
        first: the oldest version whose files the log still names.
        commits: when each version that still exists was made, UNIX seconds, in order.
        entries, entry_bytes: number and size of the versions since the newest checkpoint.
        files: by path and deletion vector.
        removed: files that are no longer in the table, and that no later VACUUM has deleted.
    """

    version: int
    first: int
    commits: list[float]
    entries: int
    entry_bytes: int
    protocol: Protocol = field(default_factory=Protocol)
    metadata: Metadata | None = None
    files: dict[tuple[str, str], DeltaFile] = field(default_factory=dict)
    removed: dict[tuple[str, str], Remove] = field(default_factory=dict)
    _takes_before: float | None = None
    _partitions: dict[tuple[tuple[str, str | None], ...], Mapping[str, str | None]] = field(
        default_factory=dict
    )

    def apply(self, lines: Iterable[Line], at: float | None) -> None:
        """Apply the actions of one version, made at UNIX seconds, or of a part of a checkpoint."""
        added: list[tuple[tuple[str, str], DeltaFile]] = []
        for line in lines:
            if line.remove is not None:
                key = _key(line.remove)
                self.files.pop(key, None)
                self.removed[key] = line.remove
            elif line.add is not None:
                added.append((_key(line.add), self._file(line.add, at)))
            elif line.meta_data is not None:
                self.metadata = line.meta_data
            elif line.protocol is not None:
                self.protocol = line.protocol
            elif line.commit_info is not None:
                self._vacuumed(line.commit_info, at)
        for key, file in added:
            self.files[key] = file
            self.removed.pop(key, None)

    def _vacuumed(self, info: CommitInfo, at: float | None) -> None:
        """Forget the removed files that a VACUUM deleted, by the retention it was run with."""
        if info.operation == _VACUUM_BEGUN:
            self._takes_before = _taken_before(info, at)
        elif info.operation == _VACUUMED and info.parameter("status") != "FAILED":
            before = self._takes_before
            if before is None:
                # The checkpoint was made between start and end.
                before = _taken_before(info, at)
            self.removed = {
                key: one
                for key, one in self.removed.items()
                if (one.deletion_timestamp or 0) >= before
            }

    def _file(self, one: Add, at: float | None) -> DeltaFile:
        values = one.partition_values
        vector = one.deletion_vector
        # Some writers write 0 instead of a time.
        given = one.modification_time / 1_000 if one.modification_time else None
        return DeltaFile(
            one.size,
            rows_of(one),
            self._partitions.setdefault(tuple(values.items()), values),
            max((moment for moment in (given, at) if moment is not None), default=None),
            vector.cardinality if vector is not None else None,
        )


def _taken_before(info: CommitInfo, at: float | None) -> float:
    """Return the time before which a VACUUM deletes removed files, UNIX milliseconds."""
    periods = info.parameter("specifiedRetentionMillis"), info.parameter("defaultRetentionMillis")
    kept = next((one for one in map(_number, periods) if one is not None), _USUALLY_KEPT_MILLIS)
    moment = _number(info.timestamp)
    return (moment if moment is not None else (at or 0.0) * 1_000) - kept


def _number(given: Any) -> float | None:
    """Return a number, which some writers write as text; None if it is not one."""
    try:
        return float(given)
    except (TypeError, ValueError):
        return None


def rows_of(one: Add | Remove) -> int | None:
    """Return the rows of a file, deleted ones included; None if the log does not have them."""
    if one.stats:
        try:
            return _decode_stats(one.stats.encode()).num_records
        except (msgspec.MsgspecError, ValueError):
            return None
    return (one.stats_parsed or {}).get("numRecords") if isinstance(one, Add) else None


def _key(one: Add | Remove) -> tuple[str, str]:
    return one.path, one.deletion_vector.id if one.deletion_vector is not None else ""


@dataclass(frozen=True, slots=True)
class _Listed:
    """The files in the directory of a log."""

    versions: Mapping[int, SourceObject]
    checkpoints: Mapping[int, Sequence[SourceObject]]


class DeltaLog:
    """The log of one table.

    Args:
        location: of the table.
        store: the store it is in.
    """

    def __init__(self, location: S3Uri, store: ObjectStore) -> None:
        self._location = location
        self._prefix = f"{location.prefix}{LOG}"
        self._store = store

    def load(self) -> DeltaState:
        """Return the state of the last version.

        Raises:
            InvalidInput: there is no such table, or its log is not complete here.
            IntegrityError: a version is missing, or cannot be read.
            TransientStoreError: versions were replaced by a checkpoint while they were read.
        """
        listed, since = self._listed_at(None)
        last = max(listed.versions)
        checkpoint = last - len(since)
        state = DeltaState(
            version=last,
            first=0 if 0 in listed.versions else min(listed.checkpoints, default=last),
            commits=[listed.versions[one].last_modified for one in sorted(listed.versions)],
            entries=len(since),
            entry_bytes=sum(one.size for one in since),
        )
        for lines in self._parts_of(listed.checkpoints.get(checkpoint, ())):
            state.apply(lines, None)
        for one, read in self._each(since):
            state.apply(read, one.last_modified)
        return self._checked(state)

    def lines_at(self, version: int) -> Iterator[Iterable[Line]]:
        """Yield the lines that make up a version: parts of a checkpoint, then each later version.

        Args:
            version: the version to read.

        Raises:
            InvalidInput: there is no such table.
            IntegrityError: a version is missing, or cannot be read.
            TransientStoreError: versions were replaced by a checkpoint while they were read.
        """
        listed, since = self._listed_at(version)
        yield from self._parts_of(listed.checkpoints.get(version - len(since), ()))
        for _, lines in self._each(since):
            yield lines

    def versions_until(self, version: int) -> Iterator[tuple[int, list[Line]]]:
        """Yield each version that still exists, from the oldest to this one; raises the same."""
        listed = self._list()
        numbers = [one for one in sorted(listed.versions) if one <= version]
        each = self._each([listed.versions[one] for one in numbers])
        for number, (_, lines) in zip(numbers, each, strict=True):
            yield number, lines

    def _listed_at(self, version: int | None) -> tuple[_Listed, list[SourceObject]]:
        """Return the log, and the versions after its newest checkpoint up to this one (or last)."""
        listed = self._list()
        if not listed.versions:
            raise self._refusal("a Delta table, which has a _delta_log/ with versions")
        last = max(listed.versions) if version is None else version
        checkpoint = max((one for one in listed.checkpoints if one <= last), default=-1)
        wanted = range(checkpoint + 1, last + 1)
        missing = next((one for one in wanted if one not in listed.versions), None)
        if missing is not None:
            raise IntegrityError(f"{self._location.uri}{LOG} has no version {missing}")
        return listed, [listed.versions[one] for one in wanted]

    def _checked(self, state: DeltaState) -> DeltaState:
        if state.metadata is None:
            raise IntegrityError(f"{self._location.uri}{LOG} does not say what the table is")
        self.require_readable(state.protocol)
        return state

    def require_readable(self, protocol: Protocol) -> None:
        """Check that the log is complete as to files and rows, and is understood here.

        Raises:
            InvalidInput: it is not, or the table uses features that are not known here.
        """
        features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
        if features & _ELSEWHERE:
            raise self._refusal("a Delta table whose versions are all in its _delta_log/")
        unknown = sorted({*(protocol.reader_features or ())} - _KNOWN)
        if protocol.min_reader_version > _MOST_READER_VERSION:
            unknown.append(f"minReaderVersion {protocol.min_reader_version}")
        if unknown:
            names = ", ".join(unknown)
            raise self._refusal(f"a Delta table that asks nothing new of its readers, as {names}")

    def _refusal(self, accepted: str) -> InvalidInput:
        return InvalidInput("table", f"delta:{self._location.uri}", accepted)

    def _list(self) -> _Listed:
        versions: dict[int, SourceObject] = {}
        parts: dict[tuple[int, str], list[SourceObject]] = {}
        whole: dict[tuple[int, str], int] = {}
        for page in self._store.list_level(self._location.bucket, self._prefix):
            for one in page.objects:
                name = one.key.removeprefix(self._prefix)
                if version := _VERSION.fullmatch(name):
                    versions[int(version[1])] = one
                elif found := _CHECKPOINT.fullmatch(name):
                    number = int(found["version"])
                    of = number, found["id"] or found["parts"] or ""
                    parts.setdefault(of, []).append(one)
                    whole[of] = int(found["parts"] or 1)
        # Of several checkpoints of one version any will do; multi-part ones need all their parts.
        checkpoints = {of[0]: found for of, found in parts.items() if len(found) == whole[of]}
        return _Listed(versions, checkpoints)

    def _parts_of(self, checkpoint: Sequence[SourceObject]) -> Iterator[Iterable[Line]]:
        for one in checkpoint:
            sidecars: list[str] = []
            yield _noting(self._lines(one.key), sidecars)
            for path in sidecars:
                # Either a name below _sidecars/ or a whole URI.
                scheme, _, rest = path.partition("://")
                key = rest.partition("/")[2] if rest else f"{self._prefix}_sidecars/{scheme}"
                yield self._lines(key)

    def _each(self, versions: Sequence[SourceObject]) -> Iterator[tuple[SourceObject, list[Line]]]:
        with ThreadPoolExecutor(_READERS) as pool:
            for start in range(0, len(versions), _READERS):
                some = versions[start : start + _READERS]
                yield from zip(
                    some, pool.map(lambda one: list(self._lines(one.key)), some), strict=True
                )

    def _lines(self, key: str) -> Iterator[Line]:
        uri = f"s3://{self._location.bucket}/{key}"
        try:
            body = self._store.get(self._location.bucket, key)
        except ObjectMissing:
            raise TransientStoreError(f"{uri} is gone: look at the table again") from None
        read: Callable[[bytes], Iterator[Line]]
        read = lines_of_parquet if key.endswith(".parquet") else lines_of_json
        try:
            yield from read(body)
        except (msgspec.MsgspecError, ValueError, OSError) as error:
            raise IntegrityError(f"{uri} is damaged: {error}") from error


def _noting(lines: Iterable[Line], sidecars: list[str]) -> Iterator[Line]:
    """Yield all lines, and append the paths of sidecars to a list."""
    for line in lines:
        if line.sidecar is not None:
            sidecars.append(line.sidecar.path)
        yield line
