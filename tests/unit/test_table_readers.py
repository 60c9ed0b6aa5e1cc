"""What other readers find in a table: pyiceberg by its own file access, delta-rs, Polars."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import polars
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.catalog import load_catalog
from pyiceberg.table import TableProperties

from compactor.catalogs.opening import open_catalog
from compactor.clock import NoDeadline, SystemClock
from compactor.errors import InvalidInput
from compactor.model import Partition
from compactor.partition.inputs import PartitionRun
from compactor.sinks.table_publisher import Publishing, record_publish
from tests.rows.row_world import RowWorld
from tests.support.examples import settings
from tests.support.memory_store import ManualClock, MemoryStore
from tests.support.parquet_outputs import commit_rows, parquet
from tests.support.table_places import Place, lake_on_aws

A = Partition("source", "logs/a/", "a/")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with lake_on_aws() as url:
        yield url


@pytest.fixture
def make(endpoint: str, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[str], Place]:
    name = f"{abs(hash(request.node.name)):x}"[:12]
    return lambda kind: Place(kind, endpoint, name, tmp_path)


# Field ids: a source may have those of another table.


def with_ids(ids: Mapping[str, int], **columns: Any) -> pa.Table:
    plain = pa.table(columns)
    fields = [
        field.with_metadata({"PARQUET:field_id": str(ids[field.name])})
        if field.name in ids
        else field
        for field in plain.schema
    ]
    return plain.cast(pa.schema(fields))


def large_source_in_a_table(table: pa.Table, directory: Path, **options: Any) -> list[Any]:
    """Compact a small source into a new table, then one above the size for copies."""
    address = f"sql:sqlite:///{directory}/catalog.db#lake.events"
    world = RowWorld(format="parquet", output_format="same", small_object_bytes=1, table=address)
    first = pa.table({"id": [0], "name": ["zero"], "city": ["Bonn"]})
    catalog = open_catalog(world.settings, world.store)
    for name, body in (("1.parquet", parquet(first)), ("2.parquet", parquet(table, **options))):
        world.put(name, body)
        world.run()
        clock = SystemClock()
        record_publish(
            Publishing(world.settings, world.store, catalog, clock, NoDeadline(), f"run-{name}")
        )
    state = catalog.load("")
    assert state is not None
    handle: Any = state.handle
    rows: list[Any] = handle.scan().to_arrow().to_pylist()
    return rows


@pytest.mark.parametrize(
    "ids", [{"id": 1, "name": 3, "city": 2}, {"id": 71, "name": 72, "city": 73}, {"name": 3}]
)
def test_a_large_source_with_field_ids_keeps_its_values_under_their_names(ids, tmp_path):
    row = {"id": 7, "name": "Ann", "city": "Rome"}
    source = with_ids(ids, **{name: [value] for name, value in row.items()})
    rows = large_source_in_a_table(source, tmp_path)
    assert sorted(rows, key=lambda one: one["id"])[1] == row


def test_a_large_source_with_int96_comes_into_a_table_as_small_ones_do(tmp_path):
    source = pa.table({"id": [7], "at": pa.array([1_700_000_000_000_000], pa.timestamp("us"))})
    world = RowWorld(
        format="parquet",
        output_format="same",
        small_object_bytes=1,
        table=f"sql:sqlite:///{tmp_path}/catalog.db#lake.events",
    )
    world.put("1.parquet", parquet(source, use_deprecated_int96_timestamps=True))
    (commit,) = world.run()
    assert commit.output is not None
    assert commit.output.columnar is not None
    assert not commit.output.copied


def publish_with(place: Place, table: pa.Table) -> Any:
    commit_rows(place.store, place.settings, A, table)
    return place.publish()


@pytest.mark.parametrize("ids", [{"id": 2, "name": 1}, {"id": 1}, {"id": 8, "name": 9}])
def test_an_output_with_field_ids_of_another_table_is_set_aside(make, ids):
    place = make("sql")
    place.commit(A, id=[1], name=["one"])
    place.publish()
    found = publish_with(place, with_ids(ids, id=[2], name=["two"]))
    assert found.outputs == 0
    assert "outputs without field ids, or with those of the table; column" in found.faults[0]
    assert place.rows() == {1: 1}


def test_an_output_with_the_field_ids_of_the_table_is_added(make):
    place = make("sql")
    place.commit(A, id=[1], name=["one"])
    place.publish()
    assert publish_with(place, with_ids({"id": 1, "name": 2}, id=[2], name=["two"])).outputs == 1
    assert place.rows("name") == {"one": 1, "two": 1}


def test_no_table_is_made_of_an_output_with_field_ids(make):
    place = make("sql")
    assert publish_with(place, with_ids({"id": 1}, id=[2])).outputs == 0
    assert place.catalog.load("") is None


def test_field_ids_are_of_no_meaning_in_a_delta_table_without_column_mapping(make):
    place = make("delta")
    place.commit(A, id=[1], name=["one"])
    place.publish()
    assert publish_with(place, with_ids({"id": 2, "name": 1}, id=[2], name=["two"])).outputs == 1
    assert place.rows("name") == {"one": 1, "two": 1}


def test_outputs_wait_while_the_name_mapping_lacks_a_column_of_theirs(make):
    place = make("sql")
    place.commit(A, id=[1], name=["one"])
    place.publish()
    complete = place.state().handle.properties[TableProperties.DEFAULT_NAME_MAPPING]
    for mapping, outputs in (('[{"field-id": 1, "names": ["id"]}]', 0), (complete, 1)):
        with place.state().handle.transaction() as change:
            change.set_properties({TableProperties.DEFAULT_NAME_MAPPING: mapping})
        place.commit(A, id=[2], name=["two"])
        found = place.publish()
        assert found.outputs == 2 * outputs
        if not outputs:
            assert "schema.name-mapping.default has column name of" in found.faults[0]
    assert place.rows("name") == {"one": 1, "two": 2}


# Statistics in Delta's log.

FAR = "\U00020000"
TEXTS = {
    "beyond the basic plane": FAR + "x",
    "the last code point": "\U0010ffff",
    "the end of the basic plane": "\uffee",
    "before the surrogates": "\ud7ff" * 70,
    "quotes": "a\"b\\c'd",
    "control characters": "\x01\x1f\n\t\x7f",
    "NUL": "a\x00b",
    "separators of lines": "\u2028\u2029\x85",
    "empty": "",
    "blanks": "  x ",
    "as long as bounds are": FAR * 64,
    "cut": "é" * 70,
    "cut between far ones": FAR * 70,
    "cut after the last code point": "\U0010ffff" * 70,
    "cut before the last code point": "a" + "\U0010ffff" * 70,
}


@pytest.fixture
def table_of(make, endpoint):
    """Publish a file for each of some texts; return the Delta table and its URI."""

    def publish(*texts: str) -> tuple[DeltaTable, str]:
        place = make("delta")
        for number, text in enumerate(texts):
            place.commit(A, id=[number], name=[text])
        assert place.publish().outputs == len(texts)
        handle: DeltaTable = place.state().handle
        return handle, f"s3://{place.bucket}/events/"

    return publish


def test_readers_find_text_that_their_statistics_have_to_let_through(table_of, endpoint):
    table, uri = table_of(*TEXTS.values())
    options = {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true"}
    arrow = table.to_pyarrow_dataset()
    rust = QueryBuilder().register("t", table)
    for number, (what, text) in enumerate(TEXTS.items()):
        for comparison, column, chosen in (
            ("=", ds.field("name") == text, polars.col("name") == text),
            (">=", ds.field("name") >= text, polars.col("name") >= text),
            ("<=", ds.field("name") <= text, polars.col("name") <= text),
        ):
            case = what, comparison
            assert number in arrow.to_table(filter=column).column("id").to_pylist(), case
            by_polars = polars.scan_delta(uri, storage_options=options).filter(chosen).collect()
            assert number in by_polars["id"].to_list(), case
            if "\x00" not in text:
                literal = text.replace("'", "''")
                query = f"select id from t where name {comparison} '{literal}'"  # noqa: S608 - a test
                found = pa.table(rust.execute(query).read_all())
                assert number in found.column("id").to_pylist(), case


def test_bounds_of_text_are_raw_and_of_limited_length(table_of):
    table, _ = table_of(FAR + "b" * 100)
    (added,) = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    assert added["min.name"] == FAR + "b" * 63
    assert added["max.name"] == FAR + "b" * 62 + "c"


# Keys of outputs.

ENCODED = ["a%b", "a%20b", "a b", "ü日", "a+b", "a&b", 'a"b', "a[b]{c}", "a\\b", "..b", FAR]
UNREADABLE = ["a//b", "a/./b", "a/../b", "a\tb", "a\x7fb"]
CUT = ["a#b", "a?b"]


def of_path(path: str) -> Partition:
    return Partition("source", f"logs/{path}/", f"{path}/")


def published(place: Place, *paths: str) -> Any:
    """Publish a row for each path, numbered from 0, and one more."""
    place.commit(A, id=[-1])
    for number, path in enumerate(paths):
        place.commit(of_path(path), id=[number])
    return place.publish()


def test_readers_of_iceberg_find_outputs_by_any_other_key(make, endpoint):
    place = make("glue")
    rows = list(range(-1, len(ENCODED)))
    assert published(place, *ENCODED).outputs == len(rows)
    catalog = load_catalog("other", type="glue", **{"s3.endpoint": endpoint})
    table = catalog.load_table(f"lake.events_{place.bucket.removeprefix('lake-')}")
    assert sorted(table.scan().to_arrow().column("id").to_pylist()) == rows
    options = {"aws_endpoint_url": endpoint, "aws_allow_http": "true"}
    found = polars.scan_iceberg(table, storage_options=options, reader_override="native")
    assert sorted(found.collect()["id"].to_list()) == rows


def test_readers_of_delta_find_outputs_by_any_other_key(make):
    place = make("delta")
    rows = list(range(-1, len(ENCODED) + len(CUT)))
    assert published(place, *ENCODED, *CUT).outputs == len(rows)
    assert sorted(place.rows()) == rows
    table: DeltaTable = place.state().handle
    assert sorted(table.to_pyarrow_table().column("id").to_pylist()) == rows


@pytest.mark.parametrize(("kind", "paths"), [("sql", [*CUT, *UNREADABLE]), ("delta", UNREADABLE)])
def test_outputs_that_readers_do_not_find_by_their_keys_are_set_aside(make, kind, paths):
    place = make(kind)
    found = published(place, *paths)
    assert found.outputs == 1
    assert sum("tables do not find" in fault for fault in found.faults) == len(paths)
    assert place.rows() == {-1: 1}


@pytest.mark.parametrize(
    ("table", "uri", "path", "problem"),
    [
        ("glue:lake.events", "s3://lake/compacted/", "day#1/", "'#'"),
        ("glue:lake.events", "s3://lake/compacted/", "day?1/", "'?'"),
        ("glue:lake.events", "s3://lake/compacted/", "a//", "'//'"),
        ("delta:s3://lake/events/", "s3://lake/events/_c/", "a/../b/", "'../'"),
    ],
)
def test_a_partition_is_refused_before_it_is_compacted(table, uri, path, problem):
    store = MemoryStore(ManualClock(0))
    run = PartitionRun(
        Partition("source", f"logs/{path}", path),
        settings(table=table, s3_destination_uri=uri),
        store,
        store.clock,
        NoDeadline(),
        "run-1",
    )
    with pytest.raises(InvalidInput, match=f"keys without {problem}".replace("?", r"\?")):
        _ = run.destination


@pytest.mark.parametrize(
    ("table", "uri"),
    [
        ("glue:lake.events", "s3://lake/a#b/"),
        ("glue:lake.events", "s3://lake/a?b/"),
        ("delta:s3://lake/a#b/", "s3://lake/a#b/_c/"),
        ("delta:s3://lake/a%20b/", "s3://lake/a%20b/_c/"),
    ],
)
def test_a_destination_that_readers_do_not_find_is_refused(table, uri):
    with pytest.raises(InvalidInput, match="is not accepted"):
        settings(table=table, s3_destination_uri=uri)
