"""Sources that became rows are counted by another reader before the commit."""

from __future__ import annotations

import gzip
import json
import re

import pytest

from compactor.errors import SourceChanged
from compactor.log.columnar import Columnar
from compactor.log.entries import Output
from compactor.log.manifest import ManifestRow
from compactor.log.slice_facts import SliceFacts
from compactor.model import Compression, ObjectGroup, SourceObject
from compactor.outputs.pending import PendingOutput
from compactor.outputs.row_recount import read_rows_again
from tests.support.examples import settings
from tests.support.memory_store import MemoryStore

NAMES = ("id", "name")


def pending(sources: list[tuple[SourceObject, int]]) -> PendingOutput:
    """A stored output whose manifest says how many rows it has of each source."""
    schema = json.dumps({"type": "struct", "fields": [{"name": one} for one in NAMES]})
    rows = sum(count for _, count in sources)
    columnar = Columnar(rows, rows, "0", "0", "zstd", schema)
    output = Output(
        "lake", "k.parquet", "u", (), 1, 1, None, rows, None, Compression.NONE, columnar=columnar
    )
    manifest = tuple(
        ManifestRow(one, 0, 0, None, None, SliceFacts(count)) for one, count in sources
    )
    return PendingOutput(ObjectGroup("g", tuple(one for one, _ in sources)), output, manifest)


def check(bodies: dict[str, tuple[bytes, int]], **given: object) -> str:
    store = MemoryStore()
    sources = [(store.seed("source", name, body), count) for name, (body, count) in bodies.items()]
    given = {"output_format": "parquet", **given}
    return read_rows_again(pending(sources), settings(**given), store)


SOUND: dict[str, tuple[bytes, int]] = {
    "a.json": (b'{"id": 1}\n\n{"id": 2}', 2),
    "not-json.json": (b'{"id": 1}\nnot JSON\n{"id": 2}\n', 3),
    "bom.json": (b'\xef\xbb\xbf{"id": 1}\r\n{"id": 2}\r\n', 2),
    "a.json.gz": (gzip.compress(b'{"id": 1}\n' * 5), 5),
    "stream.json": (b'{"id": 1}{"id": 2}{"id": 3}', 3),
    "trail.json": (b'{"Records":[{"id": 1},{"id": 2}]}', 2),
    "a.csv": (b'id,name\n1,"one\nand more"\n2,two\n', 2),
    "blank.csv": (b"id,name\n1,one\n   \n\n2,two", 2),
    "semicolon.csv": (b"id;name\n1;one\n", 1),
    "nameless": (b"id,name\n1,one\n2,two\n", 2),
    "a.tsv": (b"id\tname\n1\tone\n", 1),
    "header.csv": (b"id,name\n", 0),
}


@pytest.mark.parametrize("name", SOUND)
def test_what_another_reader_counts_alike_is_committed(name: str) -> None:
    assert not check({name: SOUND[name]})


@pytest.mark.parametrize("name", SOUND)
@pytest.mark.parametrize("wrong", [-1, 1])
def test_a_row_too_few_or_too_many_withholds_the_group(name: str, wrong: int) -> None:
    body, count = SOUND[name]
    # A line of blanks is a row to some readers.
    count += wrong + (name == "blank.csv" and wrong > 0)
    assert re.search(f"{name}.*{count} in the manifest", check({name: (body, count)}))


def test_several_values_on_a_line_are_one_misfit_or_a_record_each() -> None:
    body = b'{"id": 1}\n{"id": 2} {"id": 3}\n'
    withheld = [bool(check({"a.json": (body, count)})) for count in (1, 2, 3, 4)]
    assert withheld == [True, False, False, True]


def test_a_first_row_that_became_the_names_of_columns_is_missed_as_declared() -> None:
    body = b"1,one\n2,two\n"
    assert not check({"a.csv": (body, 2)}, csv_header="absent")
    assert check({"a.csv": (body, 1)}, csv_header="absent")
    assert check({"a.csv": (body, 1)})
    assert not check({"a.csv": (body, 1)}, csv_header="present")


def test_a_sample_is_the_first_the_last_and_one_other_source() -> None:
    bodies = {f"{n}.json": (b'{"id": 1}\n', 1) for n in range(9)}
    for name in ("0.json", "8.json"):
        assert name in check({**bodies, name: (b'{"id": 1}\n', 2)})
    missed = [name for name in bodies if not check({**bodies, name: (b'{"id": 1}\n', 2)})]
    assert len(missed) == 6
    for name in bodies:
        assert name in check({**bodies, name: (b'{"id": 1}\n', 2)}, second_reading="all")
        assert not check({**bodies, name: (b'{"id": 1}\n', 2)}, second_reading="none")


def test_a_source_that_changed_meanwhile_is_planned_again() -> None:
    store = MemoryStore()
    source = store.seed("source", "a.json", b'{"id": 1}\n')
    store.seed("source", "a.json", b'{"id": 2}\n')
    with pytest.raises(SourceChanged):
        read_rows_again(pending([(source, 1)]), settings(output_format="parquet"), store)


def test_a_source_with_much_content_is_not_held() -> None:
    body = gzip.compress(b'{"id": 1}\n' * 4_000_000)
    assert not check({"large.json.gz": (body, 3), "a.json": (b'{"id": 1}\n', 1)})
    wrong = check({"large.json.gz": (body, 3), "a.json": (b'{"id": 1}\n', 2)})
    assert "large" not in wrong
    assert "a.json" in wrong
