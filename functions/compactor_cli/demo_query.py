"""Runs one query twice: over the sources of a run, and over its outputs.

Both sides use the same reader for GETs, then DuckDB over the downloaded files, so that only the
objects differ. Types are not inferred, because inference could differ between the sides: JSON is
split into values and all other text into lines, and header lines that a run dropped from its
outputs are ignored on both sides.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from compactor.errors import IntegrityError
from compactor.log.entries import Commit
from compactor.model import Format, SourceObject
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor_cli.commit_logs import all_logs
from compactor_cli.demo_engines import PARQUET, DuckDb, Row, Unread
from compactor_cli.machine.extras import ExtraMissing
from compactor_cli.queried import JSON, KINDS, LINES, Staged, Staging


@dataclass(frozen=True, slots=True)
class Side:
    """What the query cost on one side.

    Attributes:
        objects: number of objects read.
        records: total number of records.
        seconds: from the first GET to the answer.
    """

    objects: int
    records: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Asked:
    """The answers of both sides.

    Attributes:
        engine: with its version; empty if nothing was queried.
        question: the SQL.
        sources, outputs: None if nothing was queried.
        partitions: rows of the answer.
        differing: partitions with different answers.
        missing: why nothing was queried; empty if it was.
    """

    engine: str = ""
    question: str = ""
    sources: Side | None = None
    outputs: Side | None = None
    partitions: int = 0
    differing: Sequence[str] = ()
    missing: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the answers for JSON."""
        return {**asdict(self), "differing": list(self.differing)}


@dataclass(slots=True)
class _Objects:
    """The objects to read, by path of the partition and kind of records."""

    sources: dict[tuple[str, str], list[SourceObject]] = field(default_factory=dict)
    outputs: dict[tuple[str, str], list[SourceObject]] = field(default_factory=dict)
    headers: set[tuple[str, str]] = field(default_factory=set)


def ask_both(settings: Settings, store: ObjectStore) -> Asked:
    """Query both sides, if DuckDB is installed and can read the records.

    Args:
        settings: of the finished run.
        store: where sources, outputs and state are.

    Raises:
        IntegrityError: DuckDB reads the sources but not the outputs.
        SourceChanged, UnreadableSource: an object has changed, or cannot be read.
    """
    try:
        return _both(DuckDb(), _named(settings, store), store)
    except ExtraMissing as error:
        return Asked(missing=str(error))
    except Unread as error:
        return Asked(missing=f"no query: {error}")


def _both(engine: DuckDb, objects: _Objects, store: ObjectStore) -> Asked:
    headers = list(objects.headers)
    try:
        before, of_sources = _ask(engine, objects.sources, headers, store)
    except Unread as error:
        raise Unread(f"{engine.name} cannot read the sources ({error})") from None
    try:
        after, of_outputs = _ask(engine, objects.outputs, headers, store)
    except Unread as error:
        said = f"{engine.name} reads the sources but not the outputs: {error}"
        raise IntegrityError(said) from None
    differing = sorted({row[0] for row in set(before) ^ set(after)})
    named = f"{engine.name} {engine.version}"
    return Asked(named, engine.question, of_sources, of_outputs, len(after), differing)


def _named(settings: Settings, store: ObjectStore) -> _Objects:
    """Return the outputs of all commits, and the sources in them."""
    objects = _Objects()
    pages = store.list_objects(settings.destination.bucket, settings.destination.prefix)
    listed = {one.key: one for page in pages for one in page}
    for log in all_logs(settings.state, store):
        for commit in log.newest_first(store):
            output = commit.output
            if output is None or output.key not in listed:
                continue
            place = (log.path, _kind(output.format))
            objects.outputs.setdefault(place, []).append(listed[output.key])
            # Without sources delivered again with the same content: outputs hold that once.
            held = [row.source for row in commit.rows]
            objects.sources.setdefault(place, []).extend(held)
            if place[1] == LINES:
                objects.headers.update((log.path, line) for line in _headers(commit))
    return objects


def _kind(known: Format | None) -> str:
    kind = KINDS[known] if known is not None else LINES
    if kind == JSON:
        return JSON
    return PARQUET if known is Format.PARQUET else LINES


def _headers(commit: Commit) -> Iterable[str]:
    """Yield the header lines of sources that the output drops, or has once."""
    left_out = {row.facts.dropped_prefix for row in commit.rows if row.facts is not None}
    for one in left_out:
        yield from one.decode("utf-8-sig", "replace").splitlines()


def _ask(
    engine: DuckDb,
    objects: Mapping[tuple[str, str], Sequence[SourceObject]],
    headers: Sequence[tuple[str, str]],
    store: ObjectStore,
) -> tuple[list[Row], Side]:
    begun = time.perf_counter()
    with TemporaryDirectory(prefix="compactor-demo-") as directory:
        staged = list(_stage(objects, store, Path(directory)))
        rows = engine.answer(staged, headers)
    seconds = time.perf_counter() - begun
    count = sum(len(some) for some in objects.values())
    return rows, Side(count, sum(row[1] for row in rows), seconds)


def _stage(
    objects: Mapping[tuple[str, str], Sequence[SourceObject]], store: ObjectStore, directory: Path
) -> Iterable[Staged]:
    """Download the objects with the store's concurrent reader."""
    places = [place for place, some in objects.items() for one in some if one.size]
    wanted = [one for some in objects.values() for one in some if one.size]
    staged = Staging(store, directory).files(wanted, [kind for _, kind in places])
    for file, (path, kind) in zip(staged, places, strict=True):
        yield Staged(file, kind, path)
