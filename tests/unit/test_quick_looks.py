"""Looks that take less time than the careful ones, and must never see anything else."""

from __future__ import annotations

import random
from itertools import permutations

import pytest

from compactor.errors import UnreadableSource
from compactor.formats import log_lines, usual_rows
from compactor.formats.first_record import first_record
from compactor.model import Format

STAMPED = b"2026-01-31 11:55:%02d.000 INFO [http-%d] shop.web.Filter - request took %d ms"
ODD = (b"", b"\r", b"no line of a log", b"\tat shop.web.Filter.run(Filter.java:7)", b"x" * 700)
ENDS = (b"", b"\n", b"\r\n", b"\n\n", b"\r")


@pytest.mark.parametrize("seed", range(40))
def test_lines_seen_in_place_are_alike_only_where_a_copy_of_them_is(seed: int) -> None:
    chance = random.Random(seed)
    agreed = 0
    for _ in range(50):
        lines = [
            STAMPED % (n % 60, n, n * n) + (b"\r" if chance.random() < 0.02 else b"")
            for n in range(chance.randrange(1, 60))
        ]
        for _ in range(chance.choice((0, 0, 1))):
            lines.insert(chance.randrange(1, len(lines) + 1), chance.choice(ODD))
        head = b"\n".join(lines) + chance.choice(ENDS)
        form = log_lines.form_of(head)
        assert form is not None
        if log_lines._have_one_form(head, form):
            sample = log_lines._sample(head, b"", complete=True)
            assert log_lines._all(form).match(sample), head
            agreed += 1
    assert agreed


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
