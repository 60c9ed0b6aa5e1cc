"""Readers that share nothing with the product see in each joined CSV what its sources hold."""

from __future__ import annotations

import csv
import subprocess
import sys
from dataclasses import replace

import pytest

from tests.foreign.drawn import drawn_set
from tests.foreign.figures import batch, failures, in_batches, table, until
from tests.foreign.readers import DuckDb, Told, by_pandas, by_python, padded
from tests.foreign.structures import SHAPES
from tests.foreign.tables import DataSet, Expected, Form, Source, have_rows_for_headers
from tests.foreign.trial import DAYS, Tally, judged

_GROUPS = 500
_READ = {"Python": lambda body, told: by_python(body, told)[1], "pandas": by_pandas}


@pytest.mark.parametrize("name", SHAPES)
def test_readers_see_the_rows_of_each_named_shape(name):
    found = in_batches(SHAPES[name].data_set(variant) for variant in range(5))
    assert failures(found) == [], table(found)


def test_readers_see_the_rows_of_what_is_drawn():
    found = until(_GROUPS, seed=0, part=(0, 1))
    assert failures(found) == [], table(found)
    assert sum(one.groups for one in found.values()) >= _GROUPS


# The data sets, and what judges them.


def test_data_sets_are_the_same_in_every_process():
    program = (
        "from tests.foreign.figures import batch; import hashlib;"
        "bodies = [o.path.encode() + o.body for d in batch(3, 5) for o in d.sources];"
        "print(hashlib.sha256(b''.join(bodies)).hexdigest())"
    )
    paths = "import sys; sys.path[:0] = " + repr([path for path in sys.path if path])
    command = [sys.executable, "-c", f"{paths}\n{program}"]
    first, second = (subprocess.run(command, capture_output=True, check=True) for _ in range(2))
    assert first.stdout == second.stdout != b""
    assert batch(3, 5) == batch(3, 5) != batch(4, 5)


def test_there_is_every_shape_that_is_named_and_what_is_drawn_differs():
    assert len(SHAPES) >= 150
    drawn = [drawn_set(0, number) for number in range(400)]
    sources = [one for each in drawn for one in each.sources]
    assert {one.form.end for one in sources} == {"\n", "\r\n"}
    assert {one.form.delimiter for one in sources} == {",", ";", "\t", "|"}
    assert {len(each.sources) for each in drawn} > {1, 2, 3, 8}
    assert {one.header is None for one in sources} == {True, False}
    assert any(one.wave for one in sources)


def test_every_reader_reads_every_source_as_its_truth_says():
    sets = [one.data_set(variant) for one in SHAPES.values() for variant in range(3)]
    sources = [one for each in sets for one in each.sources if "wider" not in each.kind]
    told = [
        Told(
            one.header is not None,
            one.form.delimiter,
            one.form.end,
            max(len(row) for row in (("",), one.first, *one.rows)),
        )
        for one in sources
    ]
    expected = [padded(one.rows, it.width) for one, it in zip(sources, told, strict=True)]
    for name, read in _READ.items():
        found = [
            padded(read(one.body, it), it.width) for one, it in zip(sources, told, strict=True)
        ]
        assert found == expected, name
    objects = {str(n): (one.body, told[n]) for n, one in enumerate(sources)}
    by_duck = DuckDb().rows(objects)
    assert [by_duck[name] for name in objects] == expected


def _set(*sources: Source) -> DataSet:
    return DataSet("a kind", sources, Expected.EITHER)


def _source(number: int, header: tuple[str, ...] | None) -> Source:
    rows = ((str(number), "x", "2026-01-02"), ("7", "y", "2026-01-03"))
    return Source(f"{DAYS[0]}{number}.csv", header, rows, Form())


@pytest.mark.parametrize(
    ("truth", "fault"),
    [
        # The bytes are those of a header and rows; the truth is another one.
        (lambda one: replace(one, rows=one.rows[1:]), "wrong"),
        # No reader could tell, and then no more than that may be wrong.
        (lambda one: replace(one, header=None, rows=(one.first, *one.rows)), "posed"),
        (lambda one: replace(one, header=None, rows=(one.first, *one.rows[1:])), "wrong"),
        (lambda one: replace(one, header=None, rows=(one.first, *one.rows, one.rows[0])), "wrong"),
    ],
)
def test_an_output_with_other_rows_than_its_sources_is_noticed(monkeypatch, truth, fault):
    sources = [_source(number, ("id", "name", "seen_at")) for number in range(4)]
    bodies = {one.path: one.body for one in sources}
    monkeypatch.setattr(Source, "body", property(lambda one: bodies[one.path]))
    assert not failures(judged([_set(*sources)], DuckDb()))
    found = judged([_set(*map(truth, sources))], DuckDb())["a kind"]
    assert (found.wrong, found.posed) == ((1, 0) if fault == "wrong" else (0, 1))
    assert f"{fault}: " in found.shown[0]
    assert "Python" in found.shown[0]


@pytest.mark.parametrize(("end", "other"), [("\n", "\r\n"), ("\r\n", "\n")])
def test_an_output_with_other_line_ends_than_its_data_set_is_noticed(monkeypatch, end, other):
    # Lines without an end, each alone in its source: the others of the data set show it.
    cut, whole = Form(end=end, ended=False), Form(end=end)
    rows = [((str(n), "x", "2026-01-02"), ("7", "x", "2026-01-03")) for n in range(8)]
    sources = [
        *(Source(f"{DAYS[0]}{n}.csv", None, one[:1], cut) for n, one in enumerate(rows[:2])),
        *(Source(f"{DAYS[1]}{n}.csv", None, one, whole) for n, one in enumerate(rows[2:])),
    ]
    assert not failures(judged([_set(*sources)], DuckDb()))
    bodies = {one.path: one.body for one in sources}
    monkeypatch.setattr(Source, "body", property(lambda one: bodies[one.path]))
    lied = [replace(one, form=replace(one.form, end=other)) for one in sources]
    found = judged([_set(*lied)], DuckDb())["a kind"]
    # The sources of the other output show line ends, and DuckDB refuses them as it does the output.
    assert (found.groups, found.wrong, found.unread) == (2, 1, 1)
    assert "DuckDB" in found.shown[0]


_POSING = [(("begin", "zero"), ("1", "x"), ("2", "y"))] * 3


@pytest.mark.parametrize(
    ("headers", "poses"),
    [
        ((("a note", "10.0.0.1"), ("other", "10.0.0.1")), True),
        ((("a note", "10.0.0.1"), ("a note", "10.0.0.1")), False),
        ((("x", "10.0.0.2"), ("x", "10.0.0.2")), True),
        ((("a note", "address"), ("other", "address")), False),
        ((("a note", "10.0.0.1"), None), False),
        # An address names no column, whatever stands beside it.
        ((("17", "10.0.0.1"), ("other", "10.0.0.1")), True),
    ],
)
def test_headers_pose_as_rows_where_their_values_have_the_types_of_rows(headers, poses):
    rows = (("x", "10.0.0.2"), ("some words", "10.0.0.3"))
    sources = [Source(f"{DAYS[0]}{n}.txt", one, rows, Form()) for n, one in enumerate(headers)]
    assert have_rows_for_headers(sources) == poses


@pytest.mark.parametrize(
    ("sources", "is_posed"),
    [
        (_POSING, True),
        ([(("", "zero"), ("a", "1"), ("b", "null"))] * 3, True),
        (_POSING[:2], False),
        ([*_POSING, (("begin", "one"), ("3", "z"))], False),
        ([(("begin", "begin"), ("1", "x"))] * 3, False),
        ([*_POSING, (("begin", "zero"), ("3", "zero"))], False),
        # In a row of another width, and a blank field.
        ([*_POSING, (("begin", "zero"), ("begin", "x", "y"))], False),
        ([(("begin", ""), ("1", ""))] * 3, False),
        # Text, values of two types, no values, and a first field of the same type.
        ([(("begin", "zero"), ("one", "x"))] * 3, False),
        ([(("begin", "zero"), ("1", "x"), ("2026-01-02", "y"))] * 3, False),
        ([(("begin", "zero"), ("null", "x"), ("", "y"))] * 3, False),
        ([(("7", "zero"), ("1", "x"))] * 3, False),
        ([(("begin", "zero"), ("1", "x"), ("offline", "y"))] * 3, False),
        ([(("begin", "zero"), ("1", "x"), ("missing", "y"))] * 3, False),
    ],
)
def test_first_rows_pose_as_a_header_to_the_letter_of_the_rule_alone(sources, is_posed):
    made = [Source(f"{DAYS[0]}{n}.csv", None, rows, Form()) for n, rows in enumerate(sources)]
    assert _set(*made).posed == ({(",", 2)} if is_posed else set())
    quoted = replace(made[-1], form=Form(quoting=csv.QUOTE_ALL))
    assert not _set(*made[:-1], quoted).posed
    assert not _set(*made[:-1], made[-1].headed).posed


def test_what_poses_as_a_header_is_joined_as_one_and_counted_apart():
    name = "no header, equal first rows of words over numbers (nobody can tell)"
    (found,) = in_batches(SHAPES[name].data_set(variant) for variant in range(5)).values()
    assert found.posed
    assert not found.wrong


def test_tallies_add_up_and_the_table_has_them():
    one = Tally(sets=1, groups=2, wrong=1, shown=["wrong: x"])
    one.left["ambiguous"] += 3
    total = Tally()
    total.add(one)
    total.add(one)
    assert (total.sets, total.wrong, total.left["ambiguous"]) == (2, 2, 6)
    assert failures({"a": total}) == ["a: wrong: x"] * 2
    # However much is shown of what is no failure.
    posed = Tally(posed=9, shown=["posed: y"] * 9)
    posed.add(one)
    assert failures({"a": posed}) == ["a: wrong: x"]
    assert "ambiguous 6" in table({"a": total})
