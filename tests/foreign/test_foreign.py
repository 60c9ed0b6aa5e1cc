"""Readers that share nothing with the product see in each joined CSV what its sources hold."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from tests.foreign.drawn import drawn_set
from tests.foreign.figures import batch, failures, in_batches, table, until
from tests.foreign.readers import DuckDb, Told, by_pandas, by_python, padded
from tests.foreign.structures import SHAPES
from tests.foreign.tables import DataSet, Expected, Form, Source
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
        (lambda one: replace(one, header=None, rows=(one.first, *one.rows)), "Python"),
        (lambda one: replace(one, rows=one.rows[1:]), "Python"),
    ],
)
def test_an_output_with_other_rows_than_its_sources_is_noticed(monkeypatch, truth, fault):
    sources = [_source(number, ("id", "name", "seen_at")) for number in range(4)]
    bodies = {one.path: one.body for one in sources}
    monkeypatch.setattr(Source, "body", property(lambda one: bodies[one.path]))
    assert not failures(judged([_set(*sources)], DuckDb()))
    lied = [truth(one) for one in sources]
    # Headerless in truth, and exactly as with a header: nobody can tell, which is counted apart.
    found = judged([_set(*lied)], DuckDb())["a kind"]
    assert found.wrong + found.posed == 1
    assert fault in found.shown[0]


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
