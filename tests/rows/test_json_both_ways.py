"""A block of JSON records converted as a whole has the rows that its records have one by one."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.encoding.row_digest import RowDigest
from compactor.rows.json_rows import Converted, JsonRows

NAMES = ["a", "A", "b", "a.b", "x y", "é", "日本", "", "`", "null"]
SCALARS = [
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(),
    pa.string(), pa.binary(), pa.date32(), pa.decimal128(10, 2), pa.decimal128(38, 0),
    pa.timestamp("us", tz="UTC"), pa.timestamp("us"), pa.null(),
]  # fmt: skip
# Those that pyarrow's reader takes.
QUICK = [
    pa.bool_(), pa.int32(), pa.int64(), pa.float64(), pa.string(), pa.timestamp("us", tz="UTC"),
]  # fmt: skip
NUMBERS = [
    "0", "-0", "-0.0", "1", "-1", "7", "1.0", "1.5", "-0.1", "1e3", "1E+3", "1e-3", "127", "128",
    "32768", "2147483647", "2147483648", "-2147483648", "9007199254740991", "9007199254740992",
    "9007199254740993", "-9007199254740993", "9007199254740992.0", "9223372036854775807",
    "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
    "18446744073709551616", "99999999999999999999999999999999999999", "1" + "0" * 22,
    "1" + "0" * 400, "1" * 5000, "1e22", "1e308", "1e309", "-1e400", "1e-320", "1e-400", "5e-324",
    "0.30000000000000004", "0.1234567890123456789", "16777217", "3.4028235e38", "3.5e38",
    "1.005", "12345678.905", "99999999.995",
]  # fmt: skip
TEXTS = [
    '""', '" "', '"a"', r'"\u0000"', r'"\ud83d\ude00"', r'"\ud800"', r'"\udc00"', r'"\ud800x"',
    r'"\ude00\ud83d"', r'"\/\b\f\n\r\t\"\\"', '"é日😀"', '"\x7f"', '"NaN"', '"Infinity"', '"-INF"',
    '"true"', '"1"', '"1.5"', '"null"', '"YWJj"', '"YWJ"', '"2026-01-02"',
    '"2026-01-02T03:04:05Z"', '"2026-01-02 03:04:05Z"', '"2026-01-02T03:04:05.123456Z"',
    '"2026-01-02T03:04:05.1Z"', '"2026-01-02T03:04:05.1234567Z"', '"2026-01-02T03:04:05"',
    '"2026-01-02T03:04:05.123+02:00"', '"2026-01-02T03:04:05+0530"', '"2026-01-02T03:04Z"',
    '"2026-01-02T24:00:00Z"', '"2026-01-02T23:59:60Z"', '"2026-02-30T00:00:00Z"',
    '"2024-02-29T00:00:00Z"', '"0000-01-01T00:00:00Z"', '"0001-01-01T00:00:00Z"',
    '"9999-12-31T23:59:59.999999Z"', '"1969-12-31T23:59:59.999999Z"', '"2026-1-2T3:4:5Z"',
    '"2026-01-02T03:04:05Z\\n"', '"2026-01-02T03:04:05z"', '"2026-01-02T03:04:05.Z"',
    '"1582-10-10T00:00:00Z"', '"+2026-01-02T03:04:05Z"', '"12026-01-02T03:04:05Z"',
]  # fmt: skip
PLAIN_TIMES = [one for one in TEXTS if one.endswith('Z"') and one.startswith('"20')]
ODD = [
    "null", "true", "false", "{}", "[]", "[null]", "[[]]", '{"a":null}', '{"a":1,"a":2}', "[1,2]",
    '{"b":{"a":[{}]}}', "[" * 50 + "]" * 50, '["a",1]', "nan", "01", "+1", ".5", "1.", "'a'", "",
]  # fmt: skip


def whole(bits: int) -> st.SearchStrategy[str]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1).map(str)


SINGLES = st.floats(allow_nan=False, allow_infinity=False, width=32).map(json.dumps)
SCALAR_TEXTS: dict[str, st.SearchStrategy[str]] = {
    "bool": st.sampled_from(["true", "false"]),
    **{f"int{bits}": whole(bits) for bits in (8, 16, 32, 64)},
    "float": SINGLES,
    "double": SINGLES | st.floats(allow_nan=False, allow_infinity=False).map(json.dumps),
    "string": st.text(max_size=4).map(json.dumps) | st.sampled_from(TEXTS[:5]),
}


def types(scalars: list[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    return st.recursive(
        st.sampled_from(scalars),
        lambda inner: st.one_of(
            inner.map(lambda kind: pa.list_(pa.field("element", kind))),
            structs(inner),
            *([inner.map(lambda kind: pa.map_(pa.string(), kind))] if scalars is SCALARS else []),
        ),
        max_leaves=4,
    )


def structs(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.StructType]:
    members = st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=3)
    return members.map(lambda found: pa.struct(list(found.items())))


def texts_of(kind: pa.DataType, *, fitting: bool) -> st.SearchStrategy[str]:
    """JSON for a column, nearly always of a value that fits, or of any value."""
    usual = _fitting(kind, fitting=fitting) | st.just("null")
    if fitting:
        return usual
    anything = st.sampled_from([*NUMBERS, *TEXTS, *ODD])
    return st.one_of(usual, usual, anything)


def _fitting(kind: pa.DataType, *, fitting: bool) -> st.SearchStrategy[str]:
    if pa.types.is_list(kind):
        element = texts_of(kind.value_type, fitting=fitting)
        return st.lists(element, max_size=3).map(lambda found: f"[{','.join(found)}]")
    if pa.types.is_map(kind):
        item = texts_of(kind.item_type, fitting=fitting)
        return st.lists(st.tuples(st.sampled_from(NAMES), item), max_size=3).map(as_object)
    if pa.types.is_struct(kind):
        return objects([kind.field(number) for number in range(kind.num_fields)], fitting=fitting)
    if pa.types.is_timestamp(kind):
        return st.sampled_from(PLAIN_TIMES[:4] if fitting else TEXTS)
    return SCALAR_TEXTS.get(str(kind), st.sampled_from([*NUMBERS, *TEXTS]))


def objects(fields: list[pa.Field], *, fitting: bool) -> st.SearchStrategy[str]:
    some = [
        st.lists(
            st.tuples(st.just(one.name), texts_of(one.type, fitting=fitting)),
            max_size=1 if fitting else 2,
        )
        for one in fields
    ]
    if not fitting:
        other = st.tuples(st.sampled_from(NAMES), st.sampled_from(ODD))
        some.append(st.sampled_from([[], [], [], []]) | st.lists(other, max_size=1))
    return st.tuples(*some).map(lambda found: as_object([one for each in found for one in each]))


def as_object(found: list[tuple[str, str]]) -> str:
    return "{" + ", ".join(f"{json.dumps(name)}: {text}" for name, text in found) + "}"


@st.composite
def blocks(draw: st.DrawFn, *, fitting: bool) -> tuple[pa.Schema, list[bytes]]:
    kinds = types(QUICK if fitting else SCALARS)
    found = draw(st.dictionaries(st.sampled_from(NAMES), kinds, min_size=1, max_size=4))
    schema = pa.schema(list(found.items()))
    records = objects(list(schema), fitting=fitting)
    texts = draw(st.lists(records, min_size=1, max_size=6))
    return schema, [one.encode("utf-8", "surrogatepass") for one in texts]


def one_by_one(schema: pa.Schema, records: list[bytes]) -> Converted:
    rows = JsonRows(schema)
    return rows._with_others(schema.empty_table(), [], records)


def digest(table: pa.Table) -> str:
    found = RowDigest()
    found.add(table)
    return found.hash


def require_same(schema: pa.Schema, records: list[bytes]) -> None:
    """Both ways give the same, and what the block gives is what each record gives alone."""
    slow = one_by_one(schema, records)
    slow.table.validate(full=True)
    assert slow.table.schema == schema
    assert slow.table.num_rows + len(slow.misfits) == len(records)
    found = JsonRows(schema).convert(records)
    assert (found.misfits, found.unknown) == (slow.misfits, slow.unknown)
    found.table.validate(full=True)
    assert found.table.schema == schema
    assert digest(found.table) == digest(slow.table)
    for index, record in enumerate(records):
        alone = JsonRows(schema).convert([record])
        assert alone.misfits.get(0) == slow.misfits.get(index)


@given(blocks(fitting=False))
def test_any_records_give_the_same_both_ways(block: tuple[pa.Schema, list[bytes]]) -> None:
    require_same(*block)


@given(blocks(fitting=True))
def test_records_that_fit_give_the_same_both_ways(block: tuple[pa.Schema, list[bytes]]) -> None:
    require_same(*block)


@pytest.mark.parametrize("kind", SCALARS, ids=str)
@pytest.mark.parametrize("nested", ["", "list", "struct"])
def test_each_value_gives_the_same_both_ways_in_each_column(kind: pa.DataType, nested: str) -> None:
    wrapped = {
        "": kind,
        "list": pa.list_(pa.field("element", kind)),
        "struct": pa.struct([("a", kind)]),
    }[nested]
    schema = pa.schema([("a", wrapped), ("b", pa.int64())])
    for text in [*NUMBERS, *TEXTS, *ODD]:
        value = {"": text, "list": f"[{text}]", "struct": f'{{"a":{text}}}'}[nested]
        record = f'{{"a":{value},"b":1}}'.encode("utf-8", "surrogatepass")
        require_same(schema, [record])


USUAL: Any = pa.schema(
    [
        ("id", pa.int64()),
        ("share", pa.float64()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("tags", pa.list_(pa.field("element", pa.string()))),
        ("deep", pa.struct([("x", pa.int32()), ("y", pa.list_(pa.field("element", pa.bool_())))])),
    ]
)


def test_usual_records_are_the_same_both_ways() -> None:
    records = [
        b'{"id":1,"share":0.5,"at":"2026-01-02T03:04:05.25Z","tags":["a",null],"deep":{"x":1}}',
        b'{"deep":{"y":[true]},"id":null}',
        b"{}",
    ]
    require_same(USUAL, records)


@pytest.mark.parametrize(
    "record",
    [
        b'{"id":1,"id":2}',
        b'{"deep":{"x":1,"x":2}}',
        b'{"id":1}{"id":2}',
        b'{"id":1}\n{"id":2}',
        b'{"id":\n1}',
        b'{"id":1} ',
        b'\t{"id":1}\r',
        b'{"id":1,}',
        b'{"tags":["\x01"]}',
        b'{"tags":["\x7f"]}',
        b'{"tags":["\xff"]}',
        b'{"tags":["\xed\xa0\x80"]}',
        b'{"\\u0069d":1}',
        b'{"ID":1}',
        b'{"id":1}//',
        b'/**/{"id":1}',
        b'{"share":NaN}',
        b'{"share":-Infinity}',
        b"\xef\xbb\xbf{}",
        b"",
        b" ",
        b"[]",
        b"null",
        b'{"tags":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"deep":' + b'{"x":' * 100_000 + b"1" + b"}" * 100_000 + b"}",
    ],
    ids=lambda one: repr(one[:20]),
)
def test_odd_records_give_the_same_both_ways(record: bytes) -> None:
    usual = b'{"id":7}'
    for records in ([record], [usual, record], [record, usual], [usual, record, usual]):
        require_same(USUAL, records)
