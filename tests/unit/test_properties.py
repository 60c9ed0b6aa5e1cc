"""Whatever the sources hold: records in are records out, and every source can be given back."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from compactor.limits import WorkerLimits
from compactor.outputs.verify import check_commit
from tests.support.records import Made, Records, all_records, made, read_object
from tests.support.sources import Sources, given_back, of


def small_groups(most: int) -> WorkerLimits:
    return WorkerLimits(group_sources=most)


options = st.fixed_dictionaries(
    {
        "compression": st.sampled_from(["same", "none", "gzip", "zstd"]),
        "documents": st.sampled_from(["as_is", "as_is", "lines"]),
        # Rows of any kind under one header; which headers are certain is tested elsewhere.
        "csv_header": st.just("present"),
    }
)


@examples(max_examples=300)
@given(st.lists(made(), min_size=1, max_size=9), options, st.sampled_from([2, 3, 100]))
def test_records_in_are_records_out_and_every_source_is_given_back(
    sources: list[Made], given_: dict[str, Any], most: int
) -> None:
    Sources(sources, limits=small_groups(most), **given_).check_everything()


@examples(max_examples=120)
@given(st.lists(made(), min_size=1, max_size=6), options, st.integers(1, 40))
def test_the_same_sources_give_the_same_keys_and_bytes_however_they_are_read(
    sources: list[Made], given_: dict[str, Any], chunk: int
) -> None:
    first = Sources(sources, **given_)
    first.run()
    in_pieces = {"whole_bytes": chunk, "chunk_bytes": chunk, "page_size": 2}
    second = Sources(sources, in_pieces, **given_)
    second.run()
    assert second.outputs == first.outputs


@examples(max_examples=120)
@given(
    st.lists(made().filter(lambda one: not one.damaged), min_size=1, max_size=6),
    st.integers(1, 60),
)
def test_a_copy_is_its_source_and_the_packed_rest_holds_every_record(
    sources: list[Made], threshold: int
) -> None:
    world = Sources(
        sources, {"min_part_bytes": 1}, small_object_bytes=threshold, csv_header="present"
    )
    world.run()
    packed = dict(world.outputs)
    left = dict(world.made)
    for commit in world.commits():
        check_commit(commit, world.store)
        if commit.output is not None and commit.output.copied:
            (row,) = commit.rows
            one = left.pop(row.source.key)
            assert len(one.stored) >= threshold
            assert packed.pop(commit.output.key) == one.stored
            assert given_back(world, commit) == {row.source.key: one.stored}
    assert all(len(one.stored) < threshold for one in left.values())
    expected: Records = Counter()
    for one in left.values():
        expected += one.records
    assert all_records(list(packed.items())) == expected
    world.check_idle_again()


# Large sources that S3 copies into an output among others.

TINY_PARTS = {"min_part_bytes": 60, "whole_bytes": 40, "chunk_bytes": 30}


def copies_from(size: int) -> WorkerLimits:
    """Sources from this size on count as large; parts are tiny, too."""
    return WorkerLimits(
        copy_slice_bytes=size, min_part_bytes=60, copy_part_bytes=130, part_bytes=70
    )


STAMPED = b"2026-01-02 03:04:05 t\n"
SMALL = b"2026-01-02 03:04:06 small\n"


def long_lines(name: str) -> st.SearchStrategy[Made]:
    """Lines of a log, some of them long, some with a BOM or without a last newline."""
    line = st.integers(0, 90).map(lambda width: b" " + b"t" * width)
    bodies = st.builds(
        lambda bom, some, last: bom + STAMPED + b"\n".join(some) + last,
        st.sampled_from([b"", b"", b"\xef\xbb\xbf"]),
        st.lists(line, max_size=9),
        st.sampled_from([b"\n", b""]),
    )
    return bodies.map(lambda body: of(name, body))


mixed = st.lists(
    st.one_of(long_lines(".log"), long_lines(".log"), long_lines(".dat"), long_lines(".log.gz")),
    min_size=1,
    max_size=7,
)
ways = st.fixed_dictionaries(
    {
        "compression": st.sampled_from(["same", "none", "none", "gzip"]),
        "format": st.sampled_from(["auto", "auto", "text", "json_lines"]),
    }
)


@examples(max_examples=200)
@given(mixed, ways)
def test_copied_slices_give_the_same_outputs_as_reading_would(
    sources: list[Made], given_: dict[str, Any]
) -> None:
    copying_some = Sources(sources, TINY_PARTS, limits=copies_from(120), **given_)
    copying_some.run()
    reading_all = Sources(sources, **given_)
    reading_all.run()
    assert copying_some.outputs.keys() == reading_all.outputs.keys()
    for key, body in copying_some.outputs.items():
        # Whether a copied source that comes last ends with a newline is not worth a request.
        assert reading_all.outputs[key] in {body, body + b"\n"}
    for commit in copying_some.commits():
        check_commit(commit, copying_some.store)
    copying_some.check_restore()
    copying_some.check_idle_again()


@pytest.mark.parametrize("given_", [{"compression": "same"}, {"compression": "none"}])
@pytest.mark.parametrize("body", [gzip.compress(random.Random(1).randbytes(300), mtime=0)])
def test_a_large_source_is_not_copied_as_lines_when_it_is_compressed(
    given_: dict[str, Any], body: bytes
) -> None:
    made = [Made(".log", b"", body, Counter())]
    world = Sources(made, TINY_PARTS, format="text", limits=copies_from(120), **given_)
    world.run()
    (output,) = world.outputs.values()
    assert output != body + b"\n"
    assert world.store.count("copy_part") == 0


def test_copying_takes_place_where_it_can() -> None:
    body = STAMPED * 10
    sources = [of(".log", body), of(".log", SMALL), of(".log", body)]
    world = Sources(sources, TINY_PARTS, limits=copies_from(120))
    world.run()
    assert world.store.count("copy_part") > 2
    assert list(world.outputs.values()) == [body + SMALL + body]
    (commit,) = world.commits()
    assert commit.output is not None
    assert commit.output.crc32 is None, "nobody here has seen the bytes"


# Real data.


def test_real_cloudtrail_objects_become_one_document_and_come_back(real_cloudtrail: Path) -> None:
    paths = sorted(real_cloudtrail.rglob("*.json.gz"))
    assert len(paths) == 44
    sources = []
    for path in paths:
        stored = path.read_bytes()
        sources.append(
            Made(path.name, gzip.decompress(stored), stored, read_object(path.name, stored))
        )
    world = Sources(sources)
    world.check_everything()
    ((key, body),) = world.outputs.items()
    assert key.endswith(".json.gz")
    document = json.loads(gzip.decompress(body))
    assert list(document) == ["Records"]
    assert len(document["Records"]) == 2_611
    before = Counter(
        json.dumps(record) for one in sources for record in json.loads(one.plain)["Records"]
    )
    assert Counter(map(json.dumps, document["Records"])) == before
