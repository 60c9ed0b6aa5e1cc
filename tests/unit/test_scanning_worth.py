"""What a scan says of money: the right objects are counted, and about what a run asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import pytest

from compactor.model import SourceObject
from compactor.ports import KeyPage, ObjectStore
from compactor.scanning.coverage import Coverage, holdings_of
from compactor.scanning.layouts import choose
from compactor.scanning.listing import list_below
from compactor.scanning.proposals import Proposal
from compactor.settings.settings import Settings

NOW = 1_800_000_000.0
SETTINGS = Settings.from_input(
    {"s3_source_uri": "s3://source/logs/", "s3_destination_uri": "s3://lake/compacted/"}
)


@dataclass
class Listed:
    """Tells of these objects, in one page."""

    sources: list[SourceObject]

    def list_objects(
        self, bucket: str, prefix: str, *, start_after: str = "", until: str = ""
    ) -> Iterator[Sequence[SourceObject]]:
        yield self.sources

    def list_level(self, bucket: str, prefix: str) -> Iterator[KeyPage]:
        yield KeyPage((), ())


def coverages(
    objects: Iterable[tuple[str, int, str]], *proposals: tuple[str, float]
) -> list[Coverage]:
    """What runs take of keys below logs/, of these sizes and classes, by shares of families."""
    sources = sorted(
        (SourceObject("source", f"logs/{key}", "0" * 32, size, NOW - 90_000.0, storage)
         for key, size, storage in objects),
        key=lambda one: one.key,
    )  # fmt: skip
    store = cast(ObjectStore, Listed(sources))
    listed = list_below(SETTINGS, store, NOW, 10**6, lambda _: None)
    directories = Counter[str]()
    for place, counts in listed.places.items():
        directories[place.directory] += counts.objects
    families = [
        Proposal(match, "json_lines", f"a{match[1:]}", "", share)
        for match, share in proposals or [("*.json", 1.0)]
    ]
    return [Coverage(listed, layout, families) for layout in choose(directories, "logs/")]


def days(size: int, each: int = 100, storage: str = "STANDARD") -> list[tuple[str, int, str]]:
    """So many objects in each of ten days."""
    return [
        (f"2026/10/{day:02}/{n:04}.json", size, storage)
        for day in range(1, 11)
        for n in range(each)
    ]


def test_the_sources_are_what_a_run_takes_by_their_classes():
    found = coverages(
        [
            *days(1_000, 90),
            *((f"{key[:-5]}-ia.json", 200_000, "STANDARD_IA") for key, _, _ in days(1, 10)),
            ("2026/10/01/empty.json", 0, "STANDARD"),
            ("2026/10/01/cold.json", 500, "DEEP_ARCHIVE"),
        ]
    )
    before, (outputs,) = holdings_of(found)
    # Two of 1,002 keys are left alone, and the layout has them all.
    told = {one.storage_class: (one.objects, one.small_objects) for one in before}
    assert told == {"STANDARD": (900, 900), "STANDARD_IA": (100, 0)}
    assert outputs.objects == 10
    assert outputs.bytes == pytest.approx(sum(one.bytes for one in before), abs=10)


def test_only_the_share_that_the_sample_shows_to_be_taken_counts():
    keys = [*days(1_000), *((f"{key[:-5]}.jpg", 7_000, "STANDARD") for key, _, _ in days(1))]
    (before,), (after,) = holdings_of(coverages(keys, ("*.json", 0.5), ("*.jpg", 0.0)))
    assert (before.objects, before.bytes) == (500, 500_000)
    assert after.objects == 10


def test_each_object_is_read_once_and_each_output_is_begun_ended_and_committed():
    (coverage,) = coverages(days(1_000))
    work = coverage.work(SETTINGS)
    assert work.requests == {
        "LIST": 2 * 10 + 10,
        "GET": 1_000 + 2 * 10,
        "PUT": 4 * 10 + 2 * 10,
    }
    assert work.gb_seconds > 10 * 1.5
    assert work.transitions > 14


def test_formats_beside_each_other_have_outputs_of_their_own():
    keys = [*days(1_000), *((f"{key[:-5]}.csv", 1_000, "STANDARD") for key, _, _ in days(1))]
    (coverage,) = coverages(keys, ("*.json", 1.0), ("*.csv", 1.0))
    assert (coverage.partitions, coverage.outputs) == (10, 20)


def test_large_objects_are_copied_and_not_read():
    found = coverages(days(1 << 30, 3))
    work = found[0].work(SETTINGS)
    (before,), (after,) = holdings_of(found)
    assert work.requests["GET"] == 2 * 10
    assert before.objects == after.objects == 30
    # Two parts each.
    assert work.requests["PUT"] == 3 * 30 + 2 * 30 + 2 * 10


def test_two_layouts_beside_each_other_are_both_counted():
    keys = [(f"{place}/{one}", size, storage) for place in ("app", "x/web")
            for one, size, storage in days(1_000)]  # fmt: skip
    (before,), (after,) = holdings_of(coverages(keys))
    assert (before.objects, after.objects) == (2_000, 20)


def test_where_there_is_nothing_to_compact_there_is_nothing_to_count():
    assert holdings_of(coverages([("a/", 0, "STANDARD")])) == ((), ())
    (nothing,) = coverages(days(10, 1), ("*.json", 0.0))
    assert nothing.work(SETTINGS).requests == {}
    assert holdings_of([nothing]) == ((), ())
