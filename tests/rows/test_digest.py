"""The digest over rows: no chunking changes it, and any change of a value or of the order does."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.encoding.row_digest import RowDigest

LONG, TEXT = pa.int64(), pa.string()
XY = pa.struct([("x", LONG), ("y", LONG)])
DIFFERENT: list[tuple[pa.DataType, list[Any], list[Any]]] = [
    (LONG, [None, 1], [1, None]),
    (LONG, [0], [None]),
    (LONG, [1, 2], [2, 1]),
    (LONG, [1], [1, 1]),
    (pa.list_(LONG), [[]], [None]),
    (pa.list_(LONG), [[None, 1]], [[1, None]]),
    (pa.list_(LONG), [[1], [2]], [[1, 2], []]),
    (pa.list_(pa.list_(LONG)), [[[1], [2]]], [[[1, 2], []]]),
    (pa.list_(pa.list_(LONG)), [[None, [1]]], [[[], [1]]]),
    (XY, [{"x": None, "y": 1}], [{"x": 1, "y": None}]),
    (XY, [{"x": None, "y": None}], [None]),
    (pa.map_(TEXT, LONG), [[("k", None)]], [[]]),
    (pa.map_(TEXT, LONG), [[("k", 1)]], [[("l", 1)]]),
    (pa.map_(TEXT, LONG), [[]], [None]),
    (TEXT, [""], [None]),
    (TEXT, ["ab", "c"], ["a", "bc"]),
    (pa.binary(), [b"\0"], [b""]),
    (pa.bool_(), [True, False], [False, True]),
    (pa.bool_(), [False], [None]),
    (pa.float64(), [0.0], [-0.0]),
    (pa.decimal128(10, 2), [Decimal("1.00")], [Decimal("1.01")]),
    (pa.date32(), [date(2026, 1, 1)], [date(2026, 1, 2)]),
    (
        pa.timestamp("us", tz="UTC"),
        [datetime(2026, 1, 1, tzinfo=UTC)],
        [datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC)],
    ),
    (pa.null(), [None], [None, None]),
]


def digest(*tables: pa.Table) -> tuple[int, str]:
    found = RowDigest()
    for one in tables:
        found.add(one)
    return found.rows, found.hash


def table(*columns: pa.Array) -> pa.Table:
    return pa.table([*columns], [f"c{number}" for number in range(len(columns))])


@pytest.mark.parametrize(("kind", "one", "two"), DIFFERENT, ids=str)
def test_rows_that_differ_have_other_digests(
    kind: pa.DataType, one: list[Any], two: list[Any]
) -> None:
    first, second = (digest(table(pa.array(values, kind))) for values in (one, two))
    assert first != second
    assert (first[1] != second[1]) or kind == pa.null()


def test_values_of_one_column_are_not_those_of_the_next() -> None:
    none, one = pa.array([None], LONG), pa.array([1], LONG)
    assert digest(table(none, one)) != digest(table(one, none))


VALUES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (LONG, st.integers(-(2**63), 2**63 - 1)),
    (TEXT, st.text(max_size=5)),
    (pa.bool_(), st.booleans()),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.list_(TEXT), st.lists(st.none() | st.text(max_size=2), max_size=3)),
    (XY, st.fixed_dictionaries({"x": st.none() | st.integers(0, 9), "y": st.integers(0, 9)})),
    (
        pa.map_(TEXT, pa.list_(LONG)),
        st.dictionaries(st.text(max_size=2), st.lists(st.integers(0, 9), max_size=2), max_size=3),
    ),
]


@given(data=st.data(), size=st.integers(0, 40))
def test_no_chunking_changes_the_digest(data: st.DataObject, size: int) -> None:
    whole = table(
        *(
            pa.array(data.draw(st.lists(st.none() | values, min_size=size, max_size=size)), kind)
            for kind, values in VALUES
        )
    )
    cuts = sorted({0, size, *data.draw(st.lists(st.integers(0, size), max_size=4))})
    parts = [whole.slice(at, end - at) for at, end in pairwise(cuts)]
    if size:
        assert digest(*parts) == digest(whole)
        assert digest(pa.concat_tables(parts)) == digest(whole)
    rebuilt = pa.Table.from_pylist(whole.to_pylist(maps_as_pydicts=None), whole.schema)
    assert digest(rebuilt) == digest(whole)


def test_what_memory_holds_below_a_null_is_no_part_of_it() -> None:
    shared = pa.array([1, 7], LONG).buffers()[1]
    bits = pa.py_buffer(b"\x01")
    hidden = pa.Array.from_buffers(LONG, 2, [bits, shared])
    assert digest(table(hidden)) == digest(table(pa.array([1, None], LONG)))
    within = pa.StructArray.from_arrays(
        [pa.array([1, 7])], fields=[pa.field("x", LONG)], mask=pa.array([False, True])
    )
    assert digest(table(within)) == digest(table(pa.array([{"x": 1}, None], within.type)))


def test_no_rows_have_a_digest() -> None:
    assert digest() == digest()
    assert digest()[0] == 0
