"""One question asked twice: of the sources of a run, and of its outputs.

Both sides go the same way: GETs by the reader of this program, then DuckDB, or Spark where that is
missing, over what they brought. What differs is the objects alone. No type is guessed, for one
guess could differ on the two sides:
JSON is split into its values, all other text into its lines, and the header lines that a run left
out of its outputs count on neither side.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from compactor_cli.queried import JSON, LINES, Staged, Staging
from compactor_machine.extras import ExtraMissing

_JSON_FORMATS = frozenset(
    {
        Format.JSON_LINES,
        Format.UNDELIMITED_JSON,
        Format.CLOUDTRAIL,
        Format.JSON_ARRAY,
        Format.JSON_LIST,
    }
)


@dataclass(frozen=True, slots=True)
class Side:
    """What the question cost of one side.

    Attributes:
        objects: that it is about.
        gets: GETs of objects that the server was sent for it.
        records: in all.
        seconds: from the first GET to the answer.
    """

    objects: int
    gets: int
    records: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Asked:
    """Both answers.

    Attributes:
        engine: with its version; empty where nothing was asked.
        question: in the engine's words.
        sources, outputs: None where nothing was asked.
        partitions: rows of the answer.
        differing: partitions of which the answers differ.
        missing: why nothing was asked, in one line; empty where it was.
    """

    engine: str = ""
    question: str = ""
    sources: Side | None = None
    outputs: Side | None = None
    partitions: int = 0
    differing: Sequence[str] = ()
    missing: str = ""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "differing": list(self.differing)}


@dataclass(slots=True)
class _Objects:
    """What is read, by the partition's path and the way in which it is read."""

    sources: dict[tuple[str, str], list[SourceObject]] = field(default_factory=dict)
    outputs: dict[tuple[str, str], list[SourceObject]] = field(default_factory=dict)
    headers: set[tuple[str, str]] = field(default_factory=set)


def ask_both(settings: Settings, store: ObjectStore, gets: Callable[[], int]) -> Asked:
    """Ask, where DuckDB is here and can read the records.

    Args:
        settings: of the run, which is over.
        store: where everything is.
        gets: how many GETs of objects the server was sent so far.

    Raises:
        IntegrityError: the engine reads the sources, and not the outputs.
        SourceChanged, UnreadableSource: an object is not what was listed.
    """
    try:
        return _both(DuckDb(), _named(settings, store), store, gets)
    except ExtraMissing as error:
        return Asked(missing=str(error))
    except Unread as error:
        return Asked(missing=f"no query over both: {error}")


def _both(engine: DuckDb, objects: _Objects, store: ObjectStore, gets: Callable[[], int]) -> Asked:
    headers = list(objects.headers)
    try:
        before, of_sources = _ask(engine, objects.sources, headers, store, gets)
    except Unread as error:
        raise Unread(f"{engine.name} cannot read the sources ({error})") from None
    try:
        after, of_outputs = _ask(engine, objects.outputs, headers, store, gets)
    except Unread as error:
        said = f"{engine.name} reads the sources, and not the outputs: {error}"
        raise IntegrityError(said) from None
    differing = sorted({row[0] for row in set(before) ^ set(after)})
    named = f"{engine.name} {engine.version}"
    return Asked(named, engine.question, of_sources, of_outputs, len(after), differing)


def _named(settings: Settings, store: ObjectStore) -> _Objects:
    """The outputs of all commits, and the sources that are in them."""
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
            # Not what came a second time with the same content: outputs hold that once.
            held = [row.source for row in commit.rows]
            objects.sources.setdefault(place, []).extend(held)
            if place[1] == LINES:
                objects.headers.update((log.path, line) for line in _headers(commit))
    return objects


def _kind(known: Format | None) -> str:
    if known in _JSON_FORMATS:
        return JSON
    return PARQUET if known is Format.PARQUET else LINES


def _headers(commit: Commit) -> Iterable[str]:
    """The lines at the beginning of sources that its output has not, or once for all."""
    left_out = {row.facts.dropped_prefix for row in commit.rows if row.facts is not None}
    for one in left_out:
        yield from one.decode("utf-8-sig", "replace").splitlines()


def _ask(
    engine: DuckDb,
    objects: Mapping[tuple[str, str], Sequence[SourceObject]],
    headers: Sequence[tuple[str, str]],
    store: ObjectStore,
    gets: Callable[[], int],
) -> tuple[list[Row], Side]:
    sent, begun = gets(), time.perf_counter()
    with TemporaryDirectory(prefix="compactor-demo-") as directory:
        staged = list(_stage(objects, store, Path(directory)))
        rows = engine.answer(staged, headers)
    seconds = time.perf_counter() - begun
    count = sum(len(some) for some in objects.values())
    return rows, Side(count, gets() - sent, sum(row[1] for row in rows), seconds)


def _stage(
    objects: Mapping[tuple[str, str], Sequence[SourceObject]], store: ObjectStore, directory: Path
) -> Iterable[Staged]:
    """Read all objects, concurrently as far as the store's reader does."""
    places = [place for place, some in objects.items() for one in some if one.size]
    wanted = [one for some in objects.values() for one in some if one.size]
    staged = Staging(store, directory).files(wanted, [kind for _, kind in places])
    for file, (path, kind) in zip(staged, places, strict=True):
        yield Staged(file, kind, path)
