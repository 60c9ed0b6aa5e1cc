"""Sources of rows that try to make a worker outgrow its memory, in the form of scenarios.py."""

from __future__ import annotations

import gzip
import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.hostile.scenarios import ENVELOPE, MIB, TRAIL, Scenario, Sources, numbered, squeezed
from tests.support.examples import columns

ROW_SCENARIOS: dict[str, Scenario] = {}
LINES = {"output_format": "parquet", "format": "json_lines"}
# Poorly compressible, as one text and as many.
_NOISE = b"".join(b"%x" % (n * 2654435761 % 2**32) for n in range(1_200))


def scenario(make: Scenario) -> Scenario:
    ROW_SCENARIOS[make.__name__] = make
    return make


def _long(mib: int) -> bytes:
    return squeezed((b'{"a":"', 1), (_NOISE, mib * MIB // len(_NOISE)), (b'"}\n', 1), level=1)


@scenario
def records_of_the_longest_size() -> tuple[Sources, dict[str, Any]]:
    """As long as a record may be."""
    return numbered(".json.gz", _long(7), 3), LINES


@scenario
def records_of_64_mib() -> tuple[Sources, dict[str, Any]]:
    """Longer than that."""
    return numbered(".json.gz", _long(63), 2), LINES


@scenario
def dead_letters_of_the_longest_size() -> tuple[Sources, dict[str, Any]]:
    """Records of that size that do not fit, each after one that does."""
    times = 7 * MIB // len(_NOISE)
    body = squeezed((b'{"b":1}\n{"a":"', 1), (_NOISE, times), (b'"}\n', 1), level=1)
    return numbered(".json.gz", body, 3), {**LINES, "parquet_schema": "b BIGINT"}


@scenario
def a_field_of_csv_of_64_mib() -> tuple[Sources, dict[str, Any]]:
    body = squeezed((b'id,name\n1,"', 1), (_NOISE, 63 * MIB // len(_NOISE)), (b'"\n', 1), level=1)
    return numbered(".csv.gz", body, 2), {"output_format": "parquet", "formats": columns()}


@scenario
def ten_thousand_columns() -> tuple[Sources, dict[str, Any]]:
    """Records with all of them."""
    record = json.dumps({f"column_{n:05}": n for n in range(10_000)}).encode() + b"\n"
    return numbered(".json.gz", squeezed((record, 100)), 5), LINES


@scenario
def ten_thousand_columns_of_text() -> tuple[Sources, dict[str, Any]]:
    record = json.dumps({f"column_{n:05}": f"value {n}" for n in range(10_000)}).encode() + b"\n"
    return numbered(".json.gz", squeezed((record, 100)), 5), LINES


@scenario
def ten_thousand_columns_of_csv() -> tuple[Sources, dict[str, Any]]:
    header = ",".join(f"column_{n:05}" for n in range(10_000)).encode() + b"\n"
    row = ",".join(map(str, range(10_000))).encode() + b"\n"
    given = {"output_format": "parquet", "formats": columns()}
    return numbered(".csv.gz", squeezed((header, 1), (row, 100)), 5), given


@scenario
def each_record_has_other_names() -> tuple[Sources, dict[str, Any]]:
    """Columns are inferred from them."""
    lines = b"".join(
        b'{"id":%d,"name_%d_%d":1}\n' % (m, n, m) for n in range(10) for m in range(500)
    )
    return numbered(".json.gz", gzip.compress(lines, mtime=0), 4), LINES


@scenario
def a_gigabyte_of_nested_lists() -> tuple[Sources, dict[str, Any]]:
    """Lists of lists with nothing in them, which take more memory than bytes."""
    record = b'{"a":[' + b"[[],[],[1]]," * 4_000 + b"[]]}\n"
    body = squeezed((record, (1 << 27) // len(record)))
    return numbered(".json.gz", body, 8), LINES


@scenario
def one_list_of_7_mib() -> tuple[Sources, dict[str, Any]]:
    """Millions of values in one row."""
    body = squeezed((b'{"a":[', 1), (b"1,2,", 7 * MIB // 4), (b"3]}\n", 1))
    return numbered(".json.gz", body, 2), LINES


@scenario
def one_odd_list_of_7_mib() -> tuple[Sources, dict[str, Any]]:
    """One that does not fit, so that it is converted value by value."""
    body = squeezed((b'{"id":1}\n{"a":[', 1), (b"{},", 7 * MIB // 3), (b"1.5]}\n", 1))
    given = {**LINES, "parquet_schema": "id INT, a ARRAY<STRUCT<x: INT>>"}
    return numbered(".json.gz", body, 2), given


@scenario
def nested_100_000_deep() -> tuple[Sources, dict[str, Any]]:
    deep = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    objects = b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"\n"
    body = gzip.compress(b'{"a":"text"}\n' + deep + objects, mtime=0)
    return numbered(".json.gz", body, 5), LINES


@scenario
def nested_900_deep() -> tuple[Sources, dict[str, Any]]:
    """What a parser still takes, and other steps may not."""
    deep = b'{"a":' + b"[" * 900 + b"]" * 900 + b"}\n"
    objects = b'{"b":' * 900 + b"1" + b"}" * 900 + b"\n"
    body = gzip.compress(b'{"c":1}\n' + deep + objects, mtime=0)
    return numbered(".json.gz", body, 5), LINES


@scenario
def a_line_without_end() -> tuple[Sources, dict[str, Any]]:
    """A gibibyte of it."""
    body = squeezed((b'{"a":"', 1), (_NOISE, (1 << 30) // len(_NOISE)), level=1)
    return [("a.json.gz", body), ("z.json", b'{"a":"fine"}\n')], LINES


@scenario
def ten_thousand_tiny_sources() -> tuple[Sources, dict[str, Any]]:
    return numbered(".json", b'{"id":1,"name":"a"}\n', 10_000), {"output_format": "parquet"}


@scenario
def tiny_records_as_rows() -> tuple[Sources, dict[str, Any]]:
    """As many records as a document can hold, without a value in any of them."""
    body = squeezed((ENVELOPE[0], 1), (b"{},", 1_499_999), (b'{"a":1}' + ENVELOPE[1], 1))
    return numbered(TRAIL, body, 3), {"output_format": "parquet", "parquet_schema": "a BIGINT"}


@scenario
def a_million_tiny_misfits() -> tuple[Sources, dict[str, Any]]:
    """Each of them is kept, with its source and the reason."""
    body = squeezed((b'{"a":1}\n', 1), (b'{"b":1}\n', 100_000))
    return numbered(".json.gz", body, 10), {**LINES, "parquet_schema": "a BIGINT"}


@scenario
def misfits_beyond_what_is_kept() -> tuple[Sources, dict[str, Any]]:
    body = squeezed((b'{"a":1}\n', 1), (b'{"b":"%s"}\n' % _NOISE, 4_000), level=1)
    return numbered(".json.gz", body, 5), {**LINES, "parquet_schema": "a BIGINT"}


def _parquet(table: pa.Table, **options: Any) -> bytes:
    stream = io.BytesIO()
    pq.write_table(table, stream, **options)
    return stream.getvalue()


@scenario
def ten_thousand_columns_of_parquet() -> tuple[Sources, dict[str, Any]]:
    table = pa.table({f"column_{n:05}": pa.array(range(100)) for n in range(10_000)})
    return numbered(".parquet", _parquet(table), 5), {"format": "parquet"}


@scenario
def parquet_of_nulls() -> tuple[Sources, dict[str, Any]]:
    """Some hundred bytes with a hundred million rows."""
    table = pa.table({"a": pa.nulls(10_000_000, pa.list_(pa.int64()))})
    return numbered(".parquet", _parquet(table, compression="zstd"), 10), {"format": "parquet"}
