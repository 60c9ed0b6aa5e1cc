"""Spark parses, writes and reads schemas and Parquet objects as the row engine does."""

from __future__ import annotations

import io
import json
import shutil
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from compactor.rows.ddl import parse_ddl
from compactor.rows.schema import from_spark_json, simple, to_spark_json
from tests.rows.ddl_strings import STRINGS
from tests.rows.row_world import RowWorld, account
from tests.rows.schemas import schema


@pytest.fixture(scope="module")
def session(spark_session: SparkSession) -> SparkSession:
    own = spark_session.newSession()
    for name, value in {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.caseSensitive": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    }.items():
        own.conf.set(name, value)
    return own


def by_spark(session: SparkSession, text: str) -> str | None:
    """Spark's JSON of a DDL string, all nullable; None if Spark refuses it."""
    try:
        found = session.createDataFrame([], text).schema.json()
    except Exception:  # of several classes, as the JVM rejects some types later than others
        return None
    nullable = found.replace('"nullable":false', '"nullable":true')
    return nullable.replace('ContainsNull":false', 'ContainsNull":true')


def by_us(text: str) -> str | None:
    try:
        return to_spark_json(parse_ddl(text))
    except ValueError:
        return None


def test_spark_parses_the_same_columns(session: SparkSession) -> None:
    columns = {text: by_us(text) for text in STRINGS}
    accepted = {text: schema for text, schema in columns.items() if schema is not None}
    assert len(accepted) > 80
    assert {text: by_spark(session, text) for text in accepted} == accepted


def test_json_and_names_of_types_are_those_of_spark() -> None:
    for seed in range(300):
        given = schema(Random(seed))
        text = to_spark_json(given)
        spark = StructType.fromJson(json.loads(text))
        assert spark.json() == text
        assert spark.simpleString() == simple(given)
        assert from_spark_json(spark.jsonValue()).equals(given, check_metadata=True)


def parquet_of(frame: DataFrame, directory: Path, **options: str) -> bytes:
    """The rows of a frame as one Parquet object that Spark wrote."""
    target = directory / "frame"
    frame.coalesce(1).write.options(**options).parquet(target.as_uri())
    (path,) = target.glob("*.parquet")
    body = path.read_bytes()
    shutil.rmtree(target)
    return body


def read_by_spark(session: SparkSession, bodies: list[bytes], directory: Path) -> DataFrame:
    target = directory / "read"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    for number, body in enumerate(bodies):
        (target / f"{number}.parquet").write_bytes(body)
    return session.read.parquet(target.as_uri())


EVERYTHING = """
    select id, cast(id as string) as text, cast(id as tinyint) as tiny,
        if(id % 3 = 0, null, array(id, null, id + 1)) as numbers,
        map('a', id, 'b', null) as members,
        named_struct('x', id, 'deep', map(id, array('y', null))) as nested,
        cast(id as decimal(20, 4)) / 3 as amount, cast(id as decimal(7, 2)) as small,
        date '1066-10-14' as day, timestamp '1066-10-14 09:00:00.123456' as moment,
        timestamp_ntz '2026-01-02 03:04:05.000001' as local_moment,
        cast('nan' as double) as odd, cast(0.1 as float) as single,
        cast(cast(id as string) as binary) as bytes, id % 2 = 0 as even,
        cast(null as string) as nothing, array(named_struct('z', array(id))) as list
    from range({first}, {last})
"""


@pytest.mark.parametrize("legacy", ["false", "true"])
@pytest.mark.parametrize("timestamps", ["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"])
def test_rows_that_spark_wrote_are_rows_that_spark_reads(
    session: SparkSession, tmp_path: Path, legacy: str, timestamps: str
) -> None:
    own = session.newSession()
    for name, value in {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.caseSensitive": "true",
        "spark.sql.parquet.writeLegacyFormat": legacy,
        "spark.sql.parquet.outputTimestampType": timestamps,
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    }.items():
        own.conf.set(name, value)
    world = RowWorld(format="parquet", output_format="same")
    bodies = []
    for number in range(3):
        query = EVERYTHING.format(first=10 * number, last=10 * number + 10)
        bodies.append(parquet_of(own.sql(query), tmp_path, compression="gzip"))
        world.put(f"{number}.parquet", bodies[-1])
    (commit,) = world.run()
    expected = read_by_spark(own, bodies, tmp_path)
    written = [str(row) for row in expected.orderBy("id").collect()]
    types = expected.dtypes
    found = read_by_spark(own, world.outputs(), tmp_path)
    assert found.dtypes == types
    assert [str(row) for row in found.collect()] == written
    assert account(commit).rows_out == 30
    assert account(commit).codec == "gzip"
    assert StructType.fromJson(json.loads(account(commit).schema)).simpleString() == (
        expected.schema.simpleString()
    )


def _arrays() -> dict[str, tuple[pa.Array, dict[str, Any]]]:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    old = {"version": "1.0", "use_compliant_nested_type": False, "use_dictionary": False}
    found: dict[str, tuple[pa.Array, dict[str, Any]]] = {
        f"uint{bits}": (pa.array([0, 2**bits - 1, None], f"uint{bits}"), {})
        for bits in (8, 16, 32, 64)
    }
    for unit in ("s", "ms", "us", "ns"):
        found[f"timestamp {unit}"] = (pa.array([1, -1, None], pa.timestamp(unit)), {})
        zoned = pa.timestamp(unit, tz="Europe/Berlin")
        found[f"zoned {unit}"] = (pa.array([1, -1, None], zoned), {})
        found[f"duration {unit}"] = (pa.array([1, None], pa.duration(unit)), {})
    return found | {
        "int96": (
            pa.array([1_999, -1_999, -(10**18), None], pa.timestamp("ns")),
            {"use_deprecated_int96_timestamps": True},
        ),
        "uint32 old": (pa.array([2**32 - 1], pa.uint32()), old),
        "list old": (pa.array([[1, None], None, []]), old),
        "map old": (pa.array([[("a", [1])], None], pa.map_("string", pa.list_(pa.int8()))), old),
        "nested old": (pa.array([[{"x": [["a"], None]}], None]), old),
        "large": (pa.array([["a"], None], pa.large_list(pa.large_string())), {}),
        "fixed list": (pa.array([[1, 2], None], pa.list_(pa.int16(), 2)), {}),
        "fixed": (pa.array([b"ab", None], pa.binary(2)), {}),
        "view": (pa.array(["a", None], pa.string_view()), {}),
        "dictionary": (pa.array(["a", None, "a"]).dictionary_encode(), {}),
        "numbers": (pa.array([7, None, 7]).dictionary_encode(), {}),
        "json": (pa.array(["{}", None], pa.json_()), {}),
        "uuid": (pa.array([bytes(16)], pa.uuid()), {}),
        "half": (pa.array([1.5], pa.float16()), {}),
        "time": (pa.array([1], pa.time32("ms")), {}),
        "time of day": (pa.array([1], pa.time64("us")), {}),
        "date64": (pa.array([date(2026, 1, 1), None], pa.date64()), {}),
        "decimal32": (pa.array([Decimal("1.5"), None], pa.decimal32(9, 2)), {}),
        "decimal256": (pa.array([1], pa.decimal256(50, 2)), {}),
        "decimal as int": (
            pa.array([Decimal("-1.5"), None], pa.decimal128(18, 2)),
            {"store_decimal_as_integer": True},
        ),
        "pages": (pa.array([moment] * 3), {"data_page_version": "2.0"}),
        "delta": (
            pa.array(["abc", "abe", None]),
            {"use_dictionary": False, "column_encoding": {"c": "DELTA_BYTE_ARRAY"}},
        ),
    }


@pytest.mark.parametrize("case", _arrays())
def test_what_arrow_wrote_is_read_as_spark_reads_it_or_refused_by_both(
    session: SparkSession, tmp_path: Path, case: str
) -> None:
    array, options = _arrays()[case]
    stream = io.BytesIO()
    pq.write_table(pa.table({"c": array}), stream, **options)
    world = RowWorld(format="parquet", output_format="same")
    world.put("1.parquet", stream.getvalue())
    try:
        expected = read_by_spark(session, [stream.getvalue()], tmp_path)
    except PySparkException:
        expected = None
    # Spark makes a number of a duration, and its unit is lost.
    if expected is None or pa.types.is_duration(array.type):
        (commit,) = world.run()
        assert commit.output is None
        assert [source.reason for source in commit.quarantined] == ["unsupported_type"]
        return
    rows, types = [str(row) for row in expected.collect()], expected.dtypes
    world.run()
    found = read_by_spark(session, world.outputs(), tmp_path)
    assert found.dtypes == types
    assert [str(row) for row in found.collect()] == rows
