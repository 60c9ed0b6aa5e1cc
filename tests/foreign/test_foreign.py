"""Readers that share nothing with the product see in each output what is true of its sources."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from tests.foreign.__main__ import main
from tests.foreign.data_sets import DataSet, Form, Source, drawn_set
from tests.foreign.readers import DuckDb, by_pandas, by_python
from tests.foreign.trial import fate_of, judged, right, table
from tests.foreign.wrong import GONE, HEADERS, RIGHT, WRONGS, wrong
from tests.support.memory_store import MemoryStore


def test_readers_see_the_records_of_what_is_declared_rightly():
    tallies = right(600, seed=0, part=(0, 1))
    assert not [tally.shown for tally in tallies.values() if tally.wrong], table(tallies)
    assert sum(tally.refused for tally in tallies.values()) > 30


def test_what_becomes_of_what_is_declared_wrongly():
    tallies = wrong(10 * len(WRONGS), seed=0, part=(0, 1))
    assert not [fault for tally in tallies.values() for fault in tally.faults]
    assert {kind for kind, tally in tallies.items() if not tally.joined and not tally.alone} == {
        *("JSON lines for CSV", "JSON lines for text", "JSON lines for JSON arrays"),
        *("arrays for JSON lines", "CloudTrail for JSON arrays", "text for binary"),
        "text in UTF-8, and it is Latin-1",
    }
    # A wrong header loses rows that are equal in all sources, or leaves headers among the rows.
    assert {*tallies["header: true, and there is none"].seen} <= {GONE}
    assert {*tallies["header: false, and there is one"].seen} == {HEADERS}
    # A wrong delimiter, quote or escape loses nothing: what fits is joined byte by byte.
    assert tallies["quote: none, and there are quotes"].seen.keys() == {RIGHT}
    assert not sum(
        tally.gone for kind, tally in tallies.items() if "delimiter" in kind or "escape" in kind
    )


def test_the_command_prints_the_figures(capsys):
    assert main(["--groups", "20"]) == 0
    assert "all " in capsys.readouterr().out
    assert main(["--set", "7"]) == 0
    assert "Source(body=" in capsys.readouterr().out


# The data sets, and what judges them.


def test_data_sets_are_the_same_in_every_process():
    program = (
        "from tests.foreign.data_sets import drawn_set; import hashlib;"
        "bodies = [s.body for n in range(60) for s in drawn_set(3, n).sources];"
        "print(hashlib.sha256(b''.join(bodies)).hexdigest())"
    )
    paths = "import sys; sys.path[:0] = " + repr([path for path in sys.path if path])
    command = [sys.executable, "-c", f"{paths}\n{program}"]
    first, second = (subprocess.run(command, capture_output=True, check=True) for _ in range(2))
    assert first.stdout == second.stdout != b""


def test_what_is_drawn_differs():
    sets = [drawn_set(0, number) for number in range(600)]
    sources = [source for each in sets for source in each.sources]
    assert {source.form.format for source in sources} == {"csv", "json", "array", "trail", "text"}
    assert {source.form.end for source in sources} == {"\n", "\r\n"}
    assert {source.form.delimiter for source in sources} == {",", ";", "\t", "|", "\x01"}
    assert {source.header is None for source in sources} == {True, False}
    assert len({source.refused for source in sources}) > 8
    assert any(each.packed for each in sets)


def test_every_reader_reads_most_sources_as_their_truth_says():
    sources = [
        source
        for number in range(300)
        for source in drawn_set(1, number).sources
        if source.form.format == "csv" and not source.refused and not source.form.backslash
    ]
    duck = DuckDb()
    unread = {"DuckDB": 0, "pandas": 0}
    for source in sources:
        truth = [*source.records]
        width = len(source.header or (truth or [("",)])[0])
        assert by_python(source.body, source.form) == (source.header, truth)
        read = duck.read({"it": (source.body, source.form, width)})["it"]
        unread["DuckDB"] += read != truth
        unread["pandas"] += by_pandas(source.body, source.form, width) != truth
    assert all(count < 0.03 * len(sources) for count in unread.values()), unread


_SOURCES = (
    Source(b"id,name\n1,a\n", (("1", "a"),), Form("csv", header=True), ("id", "name")),
    Source(b"id,name\n2,b", (("2", "b"),), Form("csv", header=True), ("id", "name")),
)
_SET = DataSet("a kind", ".csv", {"format": "csv", "header": True}, _SOURCES)


@pytest.mark.parametrize(
    ("output", "fault"),
    [
        (b"id,name\n1,a\n2,b\n", ""),
        (b"id,name\n1,a\n", "1 records of 2 are gone"),
        (b"id,name\n1,a\nid,name\n2,b\n", "1 are new"),
        (b"1,a\n2,b\n", "its header is"),
        (b'id,name\n1,a\n2,"b\n', "unexpected end"),
        (b"id,name\n2,b\n1,a\n", "0 are new"),
    ],
)
def test_an_output_with_other_records_than_its_sources_is_noticed(monkeypatch, output, fault):
    contents = MemoryStore.contents

    def other(store, bucket, prefix):
        return dict.fromkeys(contents(store, bucket, prefix), output)

    monkeypatch.setattr(MemoryStore, "contents", other)
    tally = judged([_SET], DuckDb())["a kind"]
    assert tally.wrong == bool(fault)
    assert fault in "".join(tally.shown)


@pytest.mark.parametrize(
    ("refused", "body", "fault"),
    [
        ("an open quote", b"id,name\n2,b\n", "and was taken"),
        ("", b"id,name\n2\n", "was refused"),
    ],
)
def test_sources_that_are_taken_or_refused_wrongly_are_noticed(refused, body, fault):
    other = replace(_SOURCES[1], refused=refused, body=body)
    each = replace(_SET, sources=(*_SOURCES, other))
    tally = judged([each], DuckDb())["a kind"]
    assert fault in tally.shown[0]


def test_the_fate_of_a_data_set_names_what_was_refused():
    cut = replace(_SOURCES[1], body=b'id,name\n2,"b')
    fate = fate_of(replace(_SET, sources=(_SOURCES[0], cut)))
    assert fate.refused[1].startswith("open_quote")
    assert [len(output.sources) for output in fate.outputs] == [1]
