"""Inferred columns hold every value as it came, or its record is a dead letter.

Sources are read by the modules csv and json, outputs by DuckDB and pandas.
"""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from typing import Any

import pandas as pd
import pytest

from tests.rows.row_world import RowWorld

#: Ways to write numbers, booleans and times that a column of another spelling changes.
SPELLINGS = [
    "90210", "01234", "+4917", "-0", "007", "-7", "1e5", "1E5", "1e-07", " 1", "1 ", "1.0", "1.50",
    "1.5", "-1.5", "+1.5", "01.5", ".5", "5.", "-0.0", "0.1", "0.10000000000000000001",
    "0.30000000000000004", "9007199254740993", "9007199254740993.0", "9223372036854775807",
    "9223372036854775808", "1e400", "1e-400", "4.9406564584124654e-324", "NaN", "nan", "Inf",
    "inf", "true", "TRUE", "True", "false", "yes", "0x10", "1_000", "1,5", "\u0661",
    "2024-01-01T00:00:00.123456789Z", "2024-01-01 00:00:00", "2024-1-1", '"1"', "", " ", "null",
]  # fmt: skip
CSV_SAMPLES = {
    "bigint": ["90210", "10115"],
    "double": ["1.5", "2.25"],
    "boolean": ["true", "false"],
    "text": ["2024-01-01", "1"],
}
JSON_SAMPLES = {
    "bigint": ["1", "2"],
    "double": ["1.5", "2"],
    "decimal": ["9223372036854775808", "1"],
    "boolean": ["true"],
    "text": ['"a"'],
    "list": ["[1.5]"],
    "struct": ['{"x": 9223372036854775808, "y": 0.5}'],
}
JSON_VALUES = [
    "0", "-0", "1", "0.4", "1.5", "1.50", "1.0", "1e3", "9007199254740993", "9007199254740993.0",
    "9223372036854775807", "9223372036854775808", "99999999999999999999999999999999999999",
    "1" + "0" * 60, "0.1", "0.10000000000000000001", "0.30000000000000004",
    "1.2345678901234567891", "1e400", "1e-400", "-1E-400", "1.23456789012345e-310", "5e-324",
    '"1"', '"0.4"', '"1.5"', '"NaN"', '"-Infinity"', '"true"', "true", "false", "null",
    '"2024-01-01T00:00:00.123456789Z"',
]  # fmt: skip
NESTED = ["[1.5, 0.10000000000000000001]", "[9007199254740993.0]", "[2]", "[]", '["NaN"]']
NESTED += [f'{{"x": {one}, "y": 1}}' for one in JSON_VALUES]
NESTED += [f'{{"x": 1, "y": {one}}}' for one in JSON_VALUES]
NESTED += ['{"x": 1, "x": 2, "y": 1}', '{"y": 1, "x": null, "x": 1}']


def as_csv(records: dict[str, str]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([("k", "v"), *records.items()])
    return text.getvalue().encode()


def as_json(records: dict[str, str]) -> bytes:
    return "".join(f'{{"k": "{key}", "v": {value}}}\n' for key, value in records.items()).encode()


def accounted(world: RowWorld, records: dict[str, str]) -> dict[str, Any]:
    """The rows by key; each record is one row or one dead letter."""
    rows = world.rows()
    found = {row["k"]: row["v"] for row in rows}
    dead = [one["record"] for one in world.dead_letters()]
    assert len(found) == len(rows)
    assert len(rows) + len(dead) == len(records)
    return found


@pytest.mark.parametrize("sample", CSV_SAMPLES.values(), ids=CSV_SAMPLES)
@pytest.mark.parametrize("in_sample", [False, True])
def test_a_csv_field_is_written_back_as_it_came(sample: list[str], in_sample: bool) -> None:
    first = {f"a{number}": text for number, text in enumerate(sample)}
    later = {f"b{number}": text for number, text in enumerate([*SPELLINGS, *sample])}
    world = RowWorld()
    world.put("1.csv", as_csv(first))
    if not in_sample:
        world.run()
    world.put("2.csv", as_csv(later))
    world.run()
    records = first | later
    for key, value in accounted(world, records).items():
        written = str(value).lower() if isinstance(value, bool) else str(value)
        assert ("" if value is None else written) == records[key]


def test_pandas_reads_the_numbers_of_the_source() -> None:
    fields = ["1.5", "0.1", "1e-07", "123456.789", "0.30000000000000004"]
    source = as_csv({str(number): text for number, text in enumerate(fields)})
    world = RowWorld()
    world.put("1.csv", source)
    world.run()
    expected = pd.read_csv(io.BytesIO(source))
    (output,) = world.outputs()
    assert pd.read_parquet(io.BytesIO(output)).equals(expected)


@pytest.mark.parametrize("sample", JSON_SAMPLES.values(), ids=JSON_SAMPLES)
@pytest.mark.parametrize("in_sample", [False, True])
def test_a_json_value_is_the_same_value(sample: list[str], in_sample: bool) -> None:
    first = {f"a{number}": text for number, text in enumerate(sample)}
    later = {f"b{number}": text for number, text in enumerate([*JSON_VALUES, *NESTED, *sample])}
    world = RowWorld()
    world.put("1.json", as_json(first))
    if not in_sample:
        world.run()
    world.put("2.json", as_json(later))
    world.run()
    records = first | later
    for key, value in accounted(world, records).items():
        assert is_same(json.loads(records[key], parse_float=Decimal), value), records[key]
        assert records[key].count('"x":') < 2 or isinstance(value, str)


def is_same(source: Any, value: Any) -> bool:
    """Whether a column's value is that of a source; text may hold any JSON."""
    if isinstance(value, str) and not isinstance(source, str):
        return is_same(source, json.loads(value, parse_float=Decimal))
    if isinstance(source, dict):
        names = source.keys() | value.keys()
        return all(is_same(source.get(name), value.get(name)) for name in names)
    if isinstance(source, list):
        pairs = zip(source, value, strict=True)
        return isinstance(value, list) and all(is_same(*pair) for pair in pairs)
    if isinstance(source, bool | str | None) or isinstance(value, bool | str | None):
        return type(source) is type(value) and bool(source == value)
    return source in (value, Decimal(repr(value) if isinstance(value, float) else value))


def test_a_block_of_fractions_is_converted_whole_and_one_that_rounds_is_not() -> None:
    usual = {f"a{number}": repr(number / 7) for number in range(500)}
    world = RowWorld()
    world.put("1.json", as_json(usual))
    world.run()
    odd = {"b0": "1.5", "b1": "0.14285714285714284999", "b2": "1e-321", "b3": "1e-400"}
    world.put("2.json", as_json(odd))
    world.run()
    found = accounted(world, usual | odd)
    assert found.keys() == usual.keys() | {"b0", "b2"}
    assert all(repr(found[key]) == usual[key] for key in usual)
