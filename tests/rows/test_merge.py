"""Many small Parquet objects become one, row for row."""

from __future__ import annotations

import base64
import io
import json
import tempfile
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.parquet import encryption

from compactor.errors import IntegrityError, InvalidInput, SourceChanged
from compactor.log.entries import Commit
from compactor.outputs.restore import Wanted, find, restore
from compactor.outputs.verify import check_commit
from compactor.rows import parquet_input
from compactor.rows.output import RowsOutput
from compactor.rows.parquet_input import UnreadableRows, open_sources
from compactor.rows.schema import from_spark_json, simple
from tests.rows.row_world import RowWorld, account
from tests.support.memory_store import Call


def body_of(table: pa.Table | dict[str, Any], **options: Any) -> bytes:
    stream = io.BytesIO()
    given = table if isinstance(table, pa.Table) else pa.table(table)
    pq.write_table(given, stream, **options)
    return stream.getvalue()


def put(world: RowWorld, name: str, table: pa.Table | dict[str, Any], **options: Any) -> None:
    world.put(name, body_of(table, **options))


def put_sql(world: RowWorld, name: str, query: str, options: str = "") -> None:
    """Store the rows of a query as DuckDB writes them."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "rows.parquet"
        duckdb.execute(
            f"set TimeZone = 'UTC'; copy ({query}) to '{path}' (format parquet{options})"
        )
        world.put(name, path.read_bytes())


@pytest.fixture
def world() -> RowWorld:
    return RowWorld(format="parquet", output_format="same")


def schema_of(commit: Commit) -> str:
    return simple(from_spark_json(account(commit).schema))


class Celsius(pa.ExtensionType):
    """A type that only its writer knows: it is not registered."""

    def __init__(self) -> None:
        super().__init__(pa.float64(), "example.celsius")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""


def local(moment: datetime) -> datetime:
    return moment.replace(tzinfo=None)


EVERYTHING = pa.schema(
    [
        ("id", pa.int64()),
        ("text", pa.string()),
        ("numbers", pa.list_(pa.int32())),
        ("members", pa.map_(pa.string(), pa.int16())),
        ("nested", pa.struct([("x", pa.int8()), ("deep", pa.list_(pa.list_(pa.string())))])),
        ("amount", pa.decimal128(22, 4)),
        ("day", pa.date32()),
        ("moment", pa.timestamp("us", tz="UTC")),
        ("local", pa.timestamp("us")),
        ("odd", pa.float64()),
        ("bytes", pa.binary()),
        ("even", pa.bool_()),
    ]
)


def everything(first: int, last: int) -> pa.Table:
    rows = [
        {
            "id": n,
            "text": f"é{n}" if n % 5 else None,
            "numbers": None if n % 3 == 0 else [n, None, n + 1][: n % 4],
            "members": [("a", n), ("b", None)] if n % 4 else None,
            "nested": {"x": n % 100, "deep": [["y", None], None, []]} if n % 7 else None,
            "amount": Decimal(n) / 8,
            "day": date(1066, 10, 14),
            "moment": datetime(1066, 10, 14, 9, 0, 0, 123456, UTC),
            "local": local(datetime(2026, 1, 2, 3, 4, 5, 1, UTC)),
            "odd": float("nan") if n % 2 else -0.0,
            "bytes": bytes([n % 256]),
            "even": n % 2 == 0,
        }
        for n in range(first, last)
    ]
    return pa.Table.from_pylist(rows, EVERYTHING)


OLD_WRITER = {"version": "1.0", "use_dictionary": False, "use_compliant_nested_type": False}
WRITERS: tuple[dict[str, Any], ...] = (
    {},
    OLD_WRITER,
    {"data_page_version": "2.0", "compression": "zstd", "write_page_checksum": True},
    {"row_group_size": 3, "compression": "gzip", "store_schema": False},
    {"use_dictionary": False, "compression": "none", "store_decimal_as_integer": True},
    {"use_byte_stream_split": ["odd"], "use_dictionary": False},
)


def test_rows_of_all_types_and_writers_are_the_same_and_in_order(world: RowWorld) -> None:
    for number, options in enumerate(WRITERS):
        put(world, f"{number}.parquet", everything(10 * number, 10 * number + 10), **options)
    (commit,) = world.run()
    expected = everything(0, 60)
    assert len(world.outputs()) == 1
    assert repr(world.table().to_pylist()) == repr(expected.to_pylist())
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "expected.parquet"
        path.write_bytes(body_of(expected))
        found = duckdb.read_parquet(str(path))
        assert repr(world.rows()) == repr(
            [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]
        )
    assert account(commit).rows_in == account(commit).rows_out == 60
    assert [row.facts.records for row in commit.rows if row.facts] == [10] * 6
    assert check_commit(commit, world.store) == 60
    assert schema_of(commit) == (
        "struct<id:bigint,text:string,numbers:array<int>,members:map<string,smallint>,"
        "nested:struct<x:tinyint,deep:array<array<string>>>,amount:decimal(22,4),day:date,"
        "moment:timestamp,local:timestamp_ntz,odd:double,bytes:binary,even:boolean>"
    )


def test_rows_that_duckdb_wrote_are_those_that_duckdb_reads(world: RowWorld) -> None:
    query = """
        select i::{kind} as id, 'v' || i as text, [i, null] as list, map {{'k': i}} as pairs,
        {{'a': i, 'b': [{{'c': 'x'}}]}} as nested,
        timestamp '2026-01-01' + interval (i) second as t,
        timestamptz '2026-01-01 00:00:00+00' as z, i::decimal(9, 2) as money,
        ['a', 'b'][1 + i % 2]::enum('a', 'b') as choice, '{{}}'::json as document
        from range({first}, {last}) r(i)
    """
    put_sql(world, "1.parquet", query.format(kind="integer", first=0, last=10))
    put_sql(world, "2.parquet", query.format(kind="bigint", first=10, last=20), ", codec zstd")
    world.run()
    found = duckdb.sql(query.format(kind="bigint", first=0, last=20))
    assert found is not None
    expected = [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]
    assert world.rows() == expected


def test_columns_are_added_and_types_widened_at_any_depth(world: RowWorld) -> None:
    put(
        world,
        "1.parquet",
        pa.table(
            {
                "id": pa.array([1], pa.int32()),
                "share": pa.array([0.5], pa.float32()),
                "price": pa.array([Decimal("1.25")], pa.decimal128(5, 2)),
                "inner": pa.array([{"x": 1}], pa.struct([("x", pa.int8())])),
                "members": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())),
            }
        ),
    )
    list_type = pa.list_(pa.struct([("deep", pa.int32())]))
    wider = pa.struct([("y", pa.string()), ("x", pa.int32())])
    put(
        world,
        "2.parquet",
        pa.table(
            {
                "name": ["new"],
                "id": [3_000_000_000],
                "share": [0.1],
                "price": pa.array([Decimal("1234.5678")], pa.decimal128(10, 4)),
                "inner": pa.array([{"y": "z", "x": 300}], wider),
                "members": pa.array([[("k", 3_000_000_000)]], pa.map_(pa.string(), pa.int64())),
                "list": pa.array([[{"deep": 1}]], list_type),
            }
        ),
    )  # fmt: skip
    put(world, "3.parquet", {"name": pa.nulls(1), "list": [[{"far": "f"}]]})
    (commit,) = world.run()
    assert schema_of(commit) == (
        "struct<id:bigint,share:double,price:decimal(10,4),inner:struct<x:int,y:string>,"
        "members:map<string,bigint>,name:string,list:array<struct<deep:int,far:string>>>"
    )
    rows = world.rows()
    assert [str(row["price"]) for row in rows] == ["1.2500", "1234.5678", "None"]
    assert [row["inner"] for row in rows] == [{"x": 1, "y": None}, {"x": 300, "y": "z"}, None]
    assert [row["share"] for row in rows] == [0.5, 0.1, None]
    assert [row["id"] for row in rows] == [1, 3_000_000_000, None]
    assert [row["members"] for row in rows] == [{"k": 1}, {"k": 3_000_000_000}, None]
    assert [row["name"] for row in rows] == [None, "new", None]
    assert [row["list"] for row in rows] == [
        None, [{"deep": 1, "far": None}], [{"deep": None, "far": "f"}],
    ]  # fmt: skip


MOMENT = datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)
SECOND = local(MOMENT)


@pytest.mark.parametrize(
    ("array", "options", "kind", "values"),
    [
        (pa.array([255], pa.uint8()), {}, "smallint", [255]),
        (pa.array([65_535], pa.uint16()), {}, "int", [65_535]),
        (pa.array([2**32 - 1], pa.uint32()), {}, "bigint", [2**32 - 1]),
        (pa.array([2**32 - 1], pa.uint32()), {"version": "1.0"}, "bigint", [2**32 - 1]),
        (pa.array([2**64 - 1], pa.uint64()), {}, "decimal(20,0)", [Decimal(2**64 - 1)]),
        (pa.array([SECOND], pa.timestamp("ms")), {}, "timestamp_ntz", [SECOND]),
        (pa.array([SECOND], pa.timestamp("s")), {}, "timestamp_ntz", [SECOND]),
        (pa.array([-1_999], pa.timestamp("ns")), {"use_deprecated_int96_timestamps": True},
         "timestamp", [datetime(1970, 1, 1, tzinfo=UTC) - timedelta(microseconds=2)]),
        (pa.array([MOMENT], pa.timestamp("ms", tz="Asia/Tokyo")), {}, "timestamp", [MOMENT]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), {}, "string", ["a", "b", "a"]),
        (pa.array([7, 7]).dictionary_encode(), {}, "bigint", [7, 7]),
        (pa.array(["a"], pa.large_string()), {}, "string", ["a"]),
        (pa.array(["a"], pa.string_view()), {}, "string", ["a"]),
        (pa.array([b"a"], pa.large_binary()), {}, "binary", [b"a"]),
        (pa.array([b"ab"], pa.binary(2)), {}, "binary", [b"ab"]),
        (pa.array([[1], None], pa.large_list(pa.int8())), {}, "array<tinyint>", [[1], None]),
        (pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), {}, "array<tinyint>", [[1, 2], None]),
        (pa.array([["a"], ["b", None]], pa.list_(pa.dictionary(pa.int8(), pa.string()))), {},
         "array<string>", [["a"], ["b", None]]),
        (pa.array([[1], None]), OLD_WRITER, "array<bigint>", [[1], None]),
        (pa.array([date(2026, 1, 1)], pa.date64()), {}, "date", [date(2026, 1, 1)]),
        (pa.array(["{}"], pa.json_()), {}, "string", ["{}"]),
        (pa.array([Decimal("1.5")], pa.decimal32(5, 1)), {}, "decimal(5,1)", [Decimal("1.5")]),
        (pa.array([Decimal("1.5")], pa.decimal256(38, 1)), {}, "decimal(38,1)", [Decimal("1.5")]),
        (pa.nulls(2), {}, "void", [None, None]),
        (pa.array([[(1, "x")]], pa.map_(pa.uint8(), pa.large_string())), {}, "map<smallint,string>",
         [[(1, "x")]]),
    ],
)  # fmt: skip
def test_a_type_is_read_as_by_spark_whatever_arrow_notes_about_it(
    world: RowWorld, array: Any, options: dict[str, Any], kind: str, values: list[Any]
) -> None:
    put(world, "1.parquet", pa.table({"c": array}), **options)
    (commit,) = world.run()
    assert schema_of(commit) == f"struct<c:{kind}>"
    assert world.table().to_pydict() == {"c": values}


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (pa.array([5], pa.duration("us")), "column c is INT64 (ARROW:SCHEMA duration[us])"),
        (pa.array([[5]], pa.list_(pa.duration("ms"))),
         "column c.list.element is INT64 (ARROW:SCHEMA duration[ms])"),
        (pa.ExtensionArray.from_storage(Celsius(), pa.array([1.5])),
         "column c is of the Arrow extension type example.celsius"),
        (pa.array([1], pa.timestamp("ns")), "column c is INT64 (TIMESTAMP(timeUnit=nanoseconds))"),
        (pa.array([1], pa.time32("ms")), "column c is INT32 (TIME(timeUnit=milliseconds))"),
        (pa.array([1.5], pa.float16()), "column c is FIXED_LEN_BYTE_ARRAY (FLOAT16)"),
        (pa.array([bytes(16)], pa.uuid()), "column c is FIXED_LEN_BYTE_ARRAY (UUID)"),
        (pa.array([1], pa.decimal256(39, 0)), "BYTE_ARRAY (DECIMAL(precision=39,scale=0))"),
        (pa.array([[{"x": 1}]], pa.list_(pa.struct([("x", pa.time64("us"))]))),
         "column c.list.element.x is INT64 (TIME(timeUnit=microseconds))"),
    ],
)  # fmt: skip
def test_a_type_that_outputs_lack_leaves_its_source_alone(
    world: RowWorld, array: Any, reason: str
) -> None:
    put(world, "1.parquet", {"c": [1]})
    put(world, "2.parquet", pa.table({"c": array}))
    assert left_alone(world, "2.parquet").endswith(reason)
    assert world.rows() == [{"c": 1}]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("select interval 3 days as c", "column c is FIXED_LEN_BYTE_ARRAY (INTERVAL)"),
        ("select {'a': 1}::VARIANT as c", "column c is a group (VARIANT)"),
        ("select 'POINT (1 2)'::GEOMETRY as c", "its file metadata has the key 'geo'"),
        ("select uuid() as c", "column c is FIXED_LEN_BYTE_ARRAY (UUID)"),
    ],
)
def test_types_of_duckdb_that_outputs_lack_leave_their_source_alone(
    world: RowWorld, query: str, reason: str
) -> None:
    put(world, "1.parquet", {"c": [1]})
    put_sql(world, "2.parquet", query)
    assert left_alone(world, "2.parquet") == reason
    assert world.rows() == [{"c": 1}]


def test_two_columns_of_one_name_leave_their_source_alone(world: RowWorld) -> None:
    put(world, "1.parquet", pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]))
    assert left_alone(world, "1.parquet") == "two of its columns are both named a"


def geo(crs: str) -> bytes:
    columns = {"shape": {"encoding": "WKB", "geometry_types": [], "crs": {"id": crs}}}
    document = {"version": "1.1.0", "primary_column": "shape", "columns": columns}
    return json.dumps(document).encode()


def test_reference_systems_of_geoparquet_are_never_lost(world: RowWorld) -> None:
    """Read by pyarrow: what is in the output is of sources without them, the others stay."""
    for number, metadata in enumerate([{b"geo": geo("EPSG:4326")}, {b"geo": geo("EPSG:25832")}]):
        table = pa.table({"shape": [b"\1"]}).replace_schema_metadata(metadata)
        put(world, f"{number}.parquet", table)
    put(world, "2.parquet", {"shape": [b"\2"]})
    (commit,) = world.run()
    assert [one.detail for one in commit.quarantined] == ["its file metadata has the key 'geo'"] * 2
    assert world.table().to_pylist() == [{"shape": b"\2"}]
    assert len(world.store.contents("source", "logs/")) == 3


def test_arrow_types_that_say_more_than_parquet_never_share_a_column(world: RowWorld) -> None:
    """Every value that an output has is the one that pyarrow reads in its source."""
    sources = {
        "1.parquet": pa.table({"c": pa.array([1])}),
        "2.parquet": pa.table({"c": pa.array([1], pa.duration("ms"))}),
        "3.parquet": pa.table({"c": pa.array([1], pa.duration("us"))}),
        "4.parquet": pa.table({"c": pa.array([2]).dictionary_encode()}),
        "5.parquet": pa.table([pa.array([1])], pa.schema([length("ft")])),
        "6.parquet": pa.table([pa.array([[1]])], pa.schema([pa.field("d", pa.list_(length("m")))])),
        "7.parquet": pa.table([pa.array([3])], pa.schema([pa.field("c", pa.int64())])),
    }
    for name, table in sources.items():
        put(world, name, table)
    (commit,) = world.run()
    assert [one.source.key[-9:] for one in commit.quarantined] == [
        f"{n}.parquet" for n in (2, 3, 5, 6)
    ]
    assert {one.reason for one in commit.quarantined} == {"unsupported_type"}
    assert commit.quarantined[2].detail == "column c has the metadata 'unit'"
    assert commit.quarantined[3].detail == "column d.element has the metadata 'unit'"
    assert world.table()["c"].to_pylist() == [1, 2, 3]


def length(unit: str) -> pa.Field:
    return pa.field("c", pa.int64(), metadata={"unit": unit})


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ('{"type":"struct","fields":[{"name":"c","type":"interval day to second"}]}',
         "of its Spark schema, column c: interval day to second is not a type of columns"),
        ("no json", "of its Spark schema, "),
    ],
)  # fmt: skip
def test_types_of_spark_that_parquet_lacks_leave_their_source_alone(
    world: RowWorld, schema: str, reason: str
) -> None:
    metadata = {"org.apache.spark.sql.parquet.row.metadata": schema}
    put(world, "1.parquet", pa.table({"c": [1]}).replace_schema_metadata(metadata))
    assert left_alone(world, "1.parquet").startswith(reason)


def left_alone(world: RowWorld, name: str) -> str:
    """The detail for the one source that is left alone."""
    (commit,) = world.run()
    (quarantined,) = commit.quarantined
    assert quarantined.reason == "unsupported_type"
    assert quarantined.source.key.endswith(name)
    return quarantined.detail


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (pa.array([1]), pa.array(["x"])),
        (pa.array([date.max]), pa.array([SECOND])),
        (pa.array([1]), pa.array([1.5])),
        (pa.array([{"x": 1}]), pa.array([{"x": "y"}])),
        (pa.array([[1]]), pa.array([[True]])),
        (pa.array([1], pa.decimal128(38, 0)), pa.array([1], pa.decimal128(38, 10))),
    ],
)
def test_columns_that_clash_with_those_of_most_get_an_output_of_their_own(
    world: RowWorld, one: Any, two: Any
) -> None:
    for number in (0, 3):
        put(world, f"{number}.parquet", pa.table({"c": two, "number": [number]}))
    for number in (1, 2, 4):
        put(world, f"{number}.parquet", pa.table({"c": one, "number": [number]}))
    receipt = world.compact()
    assert (receipt.status, receipt.quarantined) == ("done", [])
    tables = [pq.read_table(pa.BufferReader(body)).to_pydict() for body in world.outputs()]
    of_one, of_two = sorted(tables, key=lambda table: table["number"][0], reverse=True)
    assert of_one == {"c": one.to_pylist() * 3, "number": [1, 2, 4]}
    assert of_two == {"c": two.to_pylist() * 2, "number": [0, 3]}
    assert world.compact().counts.objects_out == 0


def test_names_that_differ_only_in_case_share_no_output(world: RowWorld) -> None:
    put(world, "1.parquet", {"a": [1]})
    put(world, "2.parquet", {"A": [2]})
    put(world, "3.parquet", {"a": [1], "A": [2]})
    receipt = world.compact()
    assert sorted(
        tuple(pq.read_table(pa.BufferReader(o)).column_names) for o in world.outputs()
    ) == [
        ("A",),
        ("a",),
    ]
    (left,) = receipt.quarantined
    assert (left.key.rpartition("/")[2], left.reason) == ("3.parquet", "unsupported_type")
    assert left.detail.startswith("column A: bigint named a and bigint named A")


def test_an_object_without_bytes_has_no_rows(world: RowWorld) -> None:
    put(world, "1.parquet", {"a": [1]})
    world.put("2.parquet", b"")
    put(world, "3.parquet", {"a": [3]})
    receipt = world.compact()
    assert (receipt.counts.objects_in, receipt.quarantined) == (3, [])
    assert world.table().to_pydict() == {"a": [1, 3]}


def test_names_with_dots_blanks_and_quotes_are_kept(world: RowWorld) -> None:
    put(world, "1.parquet", {"a.b": [1], "a": [{"b": 2}], "c d": [3], "e`f": [4], "": [5]})
    put(world, "2.parquet", {"a.b": [6]})
    world.run()
    assert world.table().to_pylist() == [
        {"a.b": 1, "a": {"b": 2}, "c d": 3, "e`f": 4, "": 5},
        {"a.b": 6, "a": None, "c d": None, "e`f": None, "": None},
    ]


def test_sources_that_are_not_whole_parquet_are_quarantined_and_the_others_merged(
    world: RowWorld,
) -> None:
    whole = body_of({"id": [2]})
    put(world, "1.parquet", {"id": [1]})
    world.put("2.parquet", whole[:-20])
    world.put("3.parquet", b"no parquet at all, but long enough")
    world.put("4.parquet", whole[:-40] + b"\xff" * 32 + whole[-8:])
    world.put("5.parquet", b"PAR1")
    put(world, "6.parquet", {"id": [6]})
    world.put("7.parquet", whole[:-4] + b"PARE")
    (commit,) = world.run()
    assert world.rows() == [{"id": 1}, {"id": 6}]
    reasons = {q.source.key[-9:]: q.reason.value for q in commit.quarantined}
    assert reasons == {
        "2.parquet": "truncated",
        "3.parquet": "truncated",
        "4.parquet": "corrupt_compression",
        "5.parquet": "truncated",
        "7.parquet": "unknown_format",
    }
    assert not world.groups()


@pytest.mark.parametrize("kept", [parquet_input.KEPT_BYTES, 0])
def test_sources_with_damaged_pages_are_quarantined_and_leave_no_row(
    world: RowWorld, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setattr(parquet_input, "KEPT_BYTES", kept)
    options = {"row_group_size": 100, "write_page_checksum": True, "compression": "none"}
    for number in range(6):
        ids = list(range(1_000 * number, 1_000 * number + 1_000))
        body = bytearray(body_of({"id": ids}, **options))
        if number in {1, 4}:
            # In the last row group: nine of ten were in the output when it is found.
            body[body.index(ids[950].to_bytes(8, "little"))] ^= 1
        world.put(f"{number}.parquet", bytes(body))
    (commit,) = world.run()
    assert [row["id"] // 1_000 for row in world.rows()] == [
        n for n in (0, 2, 3, 5) for _ in range(1_000)
    ]
    found = {q.source.key[-9:]: q.reason.value for q in commit.quarantined}
    assert found == {"1.parquet": "corrupt_compression", "4.parquet": "corrupt_compression"}
    assert all("its rows cannot be read" in q.detail for q in commit.quarantined)
    assert account(commit).rows_in == account(commit).rows_out == 4_000


class _Keys(encryption.KmsClient):
    """Wraps no keys at all."""

    def __init__(self, config: object) -> None:
        super().__init__()

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
        return base64.b64decode(wrapped_key)


@pytest.mark.parametrize("plaintext_footer", [True, False])
def test_encrypted_sources_are_quarantined(world: RowWorld, plaintext_footer: bool) -> None:
    table = pa.table({"id": [1], "secret": ["x"]})
    config = encryption.EncryptionConfiguration(
        footer_key="f", column_keys={"c": ["secret"]}, plaintext_footer=plaintext_footer
    )
    stream = io.BytesIO()
    properties = encryption.CryptoFactory(_Keys).file_encryption_properties(
        encryption.KmsConnectionConfig(), config
    )
    with pq.ParquetWriter(stream, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)
    world.put("1.parquet", stream.getvalue())
    put(world, "2.parquet", {"id": [2]})
    (commit,) = world.run()
    assert world.rows() == [{"id": 2}]
    assert [one.reason for one in commit.quarantined] == ["unknown_format"]


def test_damaged_sources_never_end_the_process(world: RowWorld) -> None:
    whole = body_of(everything(0, 20), row_group_size=7)
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    for seed in range(300):
        random = Random(seed)
        damaged = bytearray(whole)
        for _ in range(random.choice([1, 2, 4])):
            at = random.randrange(4 if seed % 3 == 0 else footer, len(whole) - 8)
            damaged[at] ^= random.randint(1, 255)
        source = world.store.seed("source", "damaged", bytes(damaged))
        with suppress(InvalidInput, UnreadableRows):
            sources = open_sources([source], world.store)
            for body, read in sources.bodies():
                for batch in sources.rows_of(body, read.reading):
                    assert batch.schema == sources.schema


def test_a_group_without_a_readable_source_has_no_output(world: RowWorld) -> None:
    world.put("1.parquet", b"no parquet at all, but long enough")
    (commit,) = world.run()
    assert commit.output is None
    assert len(commit.quarantined) == 1


@pytest.mark.parametrize("kept", [parquet_input.KEPT_BYTES, 0])
def test_a_source_that_changed_since_it_was_listed_leaves_nothing(
    world: RowWorld, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setattr(parquet_input, "KEPT_BYTES", kept)
    put(world, "1.parquet", {"id": [1]})
    (group,) = world.groups()
    put(world, "1.parquet", {"id": [2]})
    with pytest.raises(SourceChanged):
        world._store(group)
    assert not world.uploads()


def test_a_source_that_changes_between_its_footer_and_its_rows_leaves_nothing(
    world: RowWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_input, "KEPT_BYTES", 0)
    put(world, "1.parquet", {"id": [1]})
    (group,) = world.groups()

    reads: list[Call] = []

    def change(call: Call) -> None:
        if call.name == "read_source":
            reads.append(call)
        # The first reads the footer.
        if len(reads) == 2:
            world.store.hooks.before.clear()
            put(world, "1.parquet", {"id": [2]})

    world.store.hooks.before.append(change)
    with pytest.raises(SourceChanged):
        world._store(group)
    assert len(reads) == 2
    assert not world.uploads()


def test_a_second_run_finds_nothing_to_do(world: RowWorld) -> None:
    put(world, "1.parquet", {"id": [1]})
    assert len(world.run()) == 1
    before = set(world.store.contents("lake"))
    assert world.run() == []
    assert set(world.store.contents("lake")) == before


def test_sources_without_rows_give_their_columns(world: RowWorld) -> None:
    put(world, "1.parquet", pa.table({"id": [1], "name": ["x"]}).slice(0, 0))
    (commit,) = world.run()
    assert account(commit).rows_out == 0
    assert schema_of(commit) == "struct<id:bigint,name:string>"
    assert world.table().schema.names == ["id", "name"]
    assert check_commit(commit, world.store) == 0


@pytest.mark.parametrize(("given", "codec"), [("same", "gzip"), ("zstd", "zstd"), ("none", "none")])
def test_outputs_have_the_commonest_codec_of_their_sources_or_the_given_one(
    given: str, codec: str
) -> None:
    world = RowWorld(format="parquet", output_format="same", compression=given)
    for number, found in enumerate(("snappy", "gzip", "gzip")):
        put(world, f"{number}.parquet", {"id": [number]}, compression=found)
    (commit,) = world.run()
    (body,) = world.outputs()
    found = pq.read_metadata(pa.BufferReader(body)).row_group(0).column(0).compression
    assert account(commit).codec == found.lower().replace("uncompressed", "none") == codec


def test_many_row_groups_become_one(world: RowWorld) -> None:
    for number in range(40):
        put(world, f"{number:02}.parquet", {"id": range(125 * number, 125 * number + 125)})
    world.run()
    (body,) = world.outputs()
    metadata = pq.ParquetFile(io.BytesIO(body)).metadata
    assert (metadata.num_rows, metadata.num_row_groups) == (5_000, 1)
    assert [row["id"] for row in world.rows()] == list(range(5_000))


def test_rows_that_are_read_back_differently_are_never_stored(
    world: RowWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(world, "1.parquet", {"id": range(10)})
    read_back = RowsOutput._read_back

    def read_tampered(output: RowsOutput) -> object:
        pq.write_table(pa.table({"id": [0, 1, 2, 4, 4, 5, 6, 7, 8, 9]}), output._path)
        return read_back(output)

    monkeypatch.setattr(RowsOutput, "_read_back", read_tampered)
    with pytest.raises(IntegrityError, match="the hash of the rows was"):
        world.pending()
    assert not world.uploads()


@pytest.mark.parametrize("in_memory", [parquet_input.IN_MEMORY_BYTES, 0])
def test_nothing_is_left_on_disk(
    world: RowWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: int
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(parquet_input, "KEPT_BYTES", 0)
    monkeypatch.setattr(parquet_input, "IN_MEMORY_BYTES", in_memory)
    put(world, "1.parquet", {"id": [1]})
    put(world, "2.parquet", {"id": [2]})
    world.run()
    assert [row["id"] for row in world.table().to_pylist()] == [1, 2]
    assert [one for one in tmp_path.iterdir() if one.name.startswith("compactor")] == []


def test_each_row_has_the_key_of_its_source_and_its_position_there() -> None:
    world = RowWorld(
        format="parquet", output_format="same", table="glue:lake.people", upsert_key=["id"]
    )
    put(world, "1.parquet", {"id": range(5)}, row_group_size=2)
    put(world, "2.parquet", {"id": range(5, 7)})
    pending = world.pending()
    assert pending.output is not None
    assert pending.output.columnar is not None
    schema = from_spark_json(pending.output.columnar.schema)
    assert simple(schema) == "struct<id:bigint,__source_key:string,__position:bigint>"


@pytest.mark.parametrize("name", ["__source_key", "__Position"])
def test_a_column_with_the_name_of_an_origin_is_refused(name: str) -> None:
    world = RowWorld(
        format="parquet", output_format="same", table="glue:lake.people", upsert_key=["id"]
    )
    put(world, "1.parquet", {"id": [1], name: [2]})
    with pytest.raises(InvalidInput, match=f"column: '{name}' is not accepted; .* another name"):
        world.pending()
    assert not world.uploads()


def test_a_large_object_is_copied_byte_for_byte_and_can_be_restored() -> None:
    world = RowWorld(format="parquet", output_format="same", small_object_bytes=1)
    body = body_of({"id": [1]})
    world.put("1.parquet", body)
    world.run()
    assert world.outputs() == [body]
    (found,) = find(world.log.every_commit(), Wanted(frozenset({"logs/2026/01/02/1.parquet"})))
    ((_, pieces),) = restore(found, world.store)
    assert b"".join(pieces) == body
