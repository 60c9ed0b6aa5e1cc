"""Whatever the sources hold: records in are records out, and every source can be given back."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from compactor.limits import WorkerLimits
from compactor.outputs.verify import check_commit
from tests.support.examples import ON_LINES, columns
from tests.support.records import Made, Records, all_records, made, read_object
from tests.support.sources import Sources, given_back


def small_groups(most: int) -> WorkerLimits:
    return WorkerLimits(group_sources=most)


options = st.fixed_dictionaries(
    {
        "compression": st.sampled_from(["same", "none", "gzip", "zstd"]),
        "formats": st.sampled_from([columns(), columns(), ON_LINES]),
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
    # What is declared is never copied unread.
    st.lists(
        made().filter(lambda one: not one.damaged and ".csv" not in one.name),
        min_size=1,
        max_size=6,
    ),
    st.integers(1, 60),
)
def test_a_copy_is_its_source_and_the_packed_rest_holds_every_record(
    sources: list[Made], threshold: int
) -> None:
    world = Sources(sources, {"min_part_bytes": 1}, small_object_bytes=threshold)
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
