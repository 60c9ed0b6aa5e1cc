"""Looks that take less time than the careful ones, and must never see anything else."""

from __future__ import annotations

from itertools import permutations

import pytest

from compactor.errors import UnreadableSource
from compactor.formats import usual_rows
from compactor.formats.first_record import first_record
from compactor.model import Format

TABLES = (
    b"2026-01-31T11:55:00Z,web-1,GET,/a,200\n",
    b"3ea9de7987816e4c,web-1,2026-01-31,/a,x y\n",
    b"web-1,GET,10.0.0.1,7,8\n",
    b"1234567890123456,web-1,x,7,8\n",
    b'2026-01-31,"a, b",GET,/a,x\n',
    b"2026-01-31,7,GET,/a,8.5\n",
)


@pytest.mark.parametrize("order", list(permutations(range(len(TABLES)), 3)))
def test_evidence_of_a_table_is_the_same_whatever_tables_came_before(
    order: tuple[int, ...],
) -> None:
    for number in order:
        head = b"time,host,verb,path,status\n" + TABLES[number] * 9
        found = first_record(head, Format.CSV, "auto", complete=True)
        usual_rows._known_columns.cache_clear()
        assert first_record(head, Format.CSV, "auto", complete=True) == found
        assert found.evidence
    usual_rows._known_columns.cache_clear()


def test_a_table_of_very_many_columns_shows_its_evidence() -> None:
    width = 3_000
    names = b",".join(
        b"name %c%c%c" % (97 + n // 676, 97 + n // 26 % 26, 97 + n % 26) for n in range(width)
    )
    row = b",".join([b"2026-01-31", *[b"some words"] * (width - 1)])
    rows = b"\n" + b"\n".join([row] * 3) + b"\n"
    assert first_record(names + rows, Format.CSV, "auto", complete=True).evidence == 1


@pytest.mark.parametrize("row", [b"x,1,2026-01-31", b"1,2,3", b"1"])
def test_rows_with_other_fields_than_names_are_no_evidence(row: bytes) -> None:
    usual_rows._known_columns.cache_clear()
    head = b"name,count\n" + (row + b"\n") * 12
    assert not usual_rows.usual_evidence(head, 10, b",", 2, complete=True)
    with pytest.raises(UnreadableSource, match="different numbers of fields"):
        first_record(head, Format.CSV, "auto", complete=True)
