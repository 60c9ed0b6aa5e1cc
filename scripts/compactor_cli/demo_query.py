"""One question asked twice: of the sources of a run, and of its outputs.

Both sides go the same way: GETs by the reader of this program, then DuckDB over what they brought.
What differs is the objects alone. No type is guessed, for one guess could differ on the two sides:
JSON is split into its values, all other text into its lines, and the header lines that a run left
out of its outputs count on neither side.
"""

# ruff: noqa: S608 - what is put into statements is paths of our own making, quoted
from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from compactor.errors import IntegrityError
from compactor.log.entries import Commit
from compactor.model import Format, SourceObject
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor_cli.commit_logs import all_logs
from compactor_cli.extras import install
from compactor_cli.queried import JSON, LINES, Staged, Staging

QUESTION = (
    "SELECT partition, count(*) AS records, sum(hash(record))::VARCHAR AS checksum"
    " FROM records GROUP BY partition ORDER BY partition"
)
_JSON_FORMATS = frozenset(
    {
        Format.JSON_LINES,
        Format.UNDELIMITED_JSON,
        Format.CLOUDTRAIL,
        Format.JSON_ARRAY,
        Format.JSON_LIST,
    }
)
_PARQUET = "parquet"
_LONGEST_JSON = 64 << 20
_MOST_WORDS = 200

#: Partition, records, checksum of these.
Row = tuple[str, int, str]


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
        sources, outputs: None where nothing was asked.
        partitions: rows of the answer.
        differing: partitions of which the answers differ.
        missing: why nothing was asked, in one line; empty where it was.
    """

    engine: str = ""
    sources: Side | None = None
    outputs: Side | None = None
    partitions: int = 0
    differing: Sequence[str] = ()
    missing: str = ""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"question": QUESTION, **asdict(self), "differing": list(self.differing)}


@dataclass(slots=True)
class _Objects:
    """What is read, by the partition's path and the way in which it is read."""

    sources: dict[tuple[str, str], list[SourceObject]] = field(default_factory=dict)
    outputs: dict[tuple[str, str], list[SourceObject]] = field(default_factory=dict)
    headers: set[tuple[str, str]] = field(default_factory=set)


def ask_both(settings: Settings, store: ObjectStore, gets: Callable[[], int]) -> Asked:
    """Ask, where DuckDB is installed and can read the records.

    Args:
        settings: of the run, which is over.
        store: where everything is.
        gets: how many GETs of objects the server was sent so far.

    Raises:
        IntegrityError: DuckDB reads the sources, and not the outputs.
        SourceChanged, UnreadableSource: an object is not what was listed.
    """
    if find_spec("duckdb") is None:
        return Asked(missing=f"a query over both needs DuckDB: {install('query')}")
    import duckdb  # noqa: PLC0415 - an extra

    objects = _named(settings, store)
    try:
        before, of_sources = _ask(objects.sources, objects.headers, store, gets)
    except duckdb.Error as error:
        return Asked(missing=f"no query over both: DuckDB cannot read the sources ({_line(error)})")
    try:
        after, of_outputs = _ask(objects.outputs, objects.headers, store, gets)
    except duckdb.Error as error:
        said = f"DuckDB reads the sources, and not the outputs: {_line(error)}"
        raise IntegrityError(said) from None
    differing = sorted({row[0] for row in set(before) ^ set(after)})
    engine = f"DuckDB {duckdb.__version__}"
    return Asked(engine, of_sources, of_outputs, len(after), differing)


def _line(error: Exception) -> str:
    # DuckDB shows the record at fault, however long it is.
    return " ".join(str(error).split())[:_MOST_WORDS]


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


def _kind(told: Format | None) -> str:
    if told in _JSON_FORMATS:
        return JSON
    return _PARQUET if told is Format.PARQUET else LINES


def _headers(commit: Commit) -> Iterable[str]:
    """The lines at the beginning of sources that its output has not, or once for all."""
    left_out = {row.facts.dropped_prefix for row in commit.rows if row.facts is not None}
    for one in left_out:
        yield from one.decode("utf-8-sig", "replace").splitlines()


def _ask(
    objects: Mapping[tuple[str, str], Sequence[SourceObject]],
    headers: Iterable[tuple[str, str]],
    store: ObjectStore,
    gets: Callable[[], int],
) -> tuple[list[Row], Side]:
    sent, begun = gets(), time.perf_counter()
    with TemporaryDirectory(prefix="compactor-demo-") as directory:
        staged = list(_stage(objects, store, Path(directory)))
        rows = _answer(staged, list(headers))
    seconds = time.perf_counter() - begun
    count = sum(len(some) for some in objects.values())
    return rows, Side(count, gets() - sent, sum(row[1] for row in rows), seconds)


def _stage(
    objects: Mapping[tuple[str, str], Sequence[SourceObject]], store: ObjectStore, directory: Path
) -> Iterable[Staged]:
    """All of them read at once, as far as the store's reader does."""
    places = [place for place, some in objects.items() for one in some if one.size]
    wanted = [one for some in objects.values() for one in some if one.size]
    staged = Staging(store, directory).files(wanted, [kind for _, kind in places])
    for file, (path, kind) in zip(staged, places, strict=True):
        yield Staged(file, kind, path)


def _answer(staged: Sequence[Staged], headers: Sequence[tuple[str, str]]) -> list[Row]:
    import duckdb  # noqa: PLC0415 - an extra

    if not staged:
        return []
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE places (filename VARCHAR, partition VARCHAR)")
        connection.execute("CREATE TABLE headers (partition VARCHAR, line VARCHAR)")
        _fill(connection, "places", [(str(one.file), one.path) for one in staged])
        _fill(connection, "headers", headers)
        views = []
        for kind in sorted({one.kind for one in staged}):
            files = ", ".join(f"'{one.file}'" for one in staged if one.kind == kind)
            views.append(f"SELECT partition, record FROM ({_VIEWS[kind].format(files=files)})")
        connection.execute(f"CREATE VIEW records AS {' UNION ALL '.join(views)}")
        rows = connection.execute(QUESTION).fetchall()
        return [(str(path), int(records), str(checksum)) for path, records, checksum in rows]


def _fill(connection: Any, table: str, rows: Sequence[tuple[str, str]]) -> None:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], []]
    both = "unnest($1::VARCHAR[]), unnest($2::VARCHAR[])"
    connection.execute(f"INSERT INTO {table} SELECT {both}", columns)


_VIEWS = {
    # An array stands for its elements, a CloudTrail document for its records.
    JSON: (
        "SELECT partition, unnest(CASE"
        " WHEN json_type(json) = 'ARRAY' THEN from_json(json, '[\"JSON\"]')"
        " WHEN json_type(json, '$.Records') = 'ARRAY' AND len(json_keys(json)) = 1"
        " THEN from_json(json -> '$.Records', '[\"JSON\"]') ELSE [json] END)::VARCHAR AS record"
        " FROM read_json_objects([{files}], format = 'unstructured', filename = true,"
        f" maximum_object_size = {_LONGEST_JSON}) JOIN places USING (filename)"
    ),
    LINES: (
        "SELECT partition, record FROM (SELECT partition, rtrim(line, chr(13)) AS record"
        " FROM read_csv([{files}],"
        " columns = {{'line': 'VARCHAR'}}, auto_detect = false, header = false, delim = '\x01',"
        " quote = '', escape = '', null_padding = true, strict_mode = false, filename = true)"
        " JOIN places USING (filename)) AS lines ANTI JOIN headers"
        " ON headers.partition = lines.partition AND headers.line = lines.record"
        " WHERE record <> ''"
    ),
    _PARQUET: (
        "SELECT partition, to_json(r)::VARCHAR AS record FROM (FROM read_parquet([{files}],"
        " union_by_name = true, filename = true)) r JOIN places USING (filename)"
    ),
}
