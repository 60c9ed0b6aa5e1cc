"""What a scan says of money: the right objects are counted, and about what a run asks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import pytest

from compactor.model import SourceObject
from compactor.ports import KeyPage, ObjectStore
from compactor.scanning.choosing import Choice, choose
from compactor.scanning.savings import holdings_of, work_of
from compactor.scanning.scan import Rest, Seen, scan
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


def found(objects: Iterable[tuple[str, int, str]]) -> tuple[Seen, Choice]:
    """What a scan sees of keys below logs/, of these sizes in bytes and storage classes."""
    sources = sorted(
        (SourceObject("source", f"logs/{key}", "0" * 32, size, NOW - 90_000.0, storage)
         for key, size, storage in objects),
        key=lambda one: one.key,
    )  # fmt: skip
    seen = scan(SETTINGS, cast(ObjectStore, Listed(sources)), NOW, most=10**6)
    return seen, choose(seen.keys, whole_bucket=False)


def days(size: int, each: int = 100, storage: str = "STANDARD") -> list[tuple[str, int, str]]:
    """So many objects in each of ten days."""
    return [
        (f"2026/10/{day:02}/{n:04}.json", size, storage)
        for day in range(1, 11)
        for n in range(each)
    ]


def test_the_sources_are_what_a_run_takes_by_their_classes():
    seen, choice = found(
        [
            *days(1_000, 90),
            *((f"{key[:-5]}-ia.json", 200_000, "STANDARD_IA") for key, _, _ in days(1, 10)),
            ("2026/10/01/empty.json", 0, "STANDARD"),
            ("2026/10/01/cold.json", 500, "DEEP_ARCHIVE"),
        ]
    )
    before, after = holdings_of(seen, choice, {})
    # Two of 1,002 keys are left alone, and the layout has them all.
    told = {one.storage_class: (one.objects, one.small_objects) for one in before}
    assert told == {"STANDARD": (900, 900), "STANDARD_IA": (100, 0)}
    (outputs,) = after
    assert outputs.objects == 10
    assert outputs.bytes == pytest.approx(sum(one.bytes for one in before), abs=10)


def test_what_was_not_listed_counts_too():
    seen, choice = found(days(1_000))
    (once,), _ = holdings_of(seen, choice, {})
    seen.rest = Rest("logs/x", 3_000, 0)
    (before,), (after,) = holdings_of(seen, choice, {})
    assert (before.objects, before.bytes) == (4 * once.objects, 4 * once.bytes)
    assert after.objects == 40
    assert work_of(seen, choice, SETTINGS).requests["GET"] == 4_000 + 2 * 40


def test_each_object_is_read_once_and_each_output_is_begun_ended_and_committed_with_a_witness():
    seen, choice = found(days(1_000))
    work = work_of(seen, choice, SETTINGS)
    assert work.requests == {
        "LIST": 2 * 10 + 2 * 10,
        "GET": 1_000 + 2 * 10,
        "PUT": 5 * 10 + 3 * 10,
    }
    assert work.gb_seconds > 10 * 1.5
    assert work.transitions > 14


def test_large_objects_are_copied_and_not_read():
    seen, choice = found(days(1 << 30, 3))
    work = work_of(seen, choice, SETTINGS)
    (before,), (after,) = holdings_of(seen, choice, {})
    assert work.requests["GET"] == 2 * 10
    assert before.objects == after.objects == 30
    # Two parts each.
    assert work.requests["PUT"] == 4 * 30 + 2 * 30 + 3 * 10


def test_of_two_readings_of_the_same_keys_one_is_counted():
    keys = [(f"0{d}/0{m}/2026/{n}.json", 100, "STANDARD")
            for d in range(1, 9) for m in range(1, 9) for n in range(3)]  # fmt: skip
    seen, choice = found(keys)
    assert len(choice.layouts) == 2
    (before,), _ = holdings_of(seen, choice, {})
    assert before.objects == len(keys)
    assert work_of(seen, choice, SETTINGS).requests["GET"] == len(keys) + 2 * 64


def test_two_layouts_beside_each_other_are_both_counted():
    keys = [(f"{place}/{one}", size, storage) for place in ("app", "x/web")
            for one, size, storage in days(1_000)]  # fmt: skip
    seen, choice = found(keys)
    assert len(choice.layouts) == 2
    (before,), (after,) = holdings_of(seen, choice, {})
    assert (before.objects, after.objects) == (2_000, 20)


def test_where_there_is_nothing_to_compact_there_is_nothing_to_count():
    seen, _ = found([("a/", 0, "STANDARD")])
    nothing = Choice((), clear=False, why="", total=0)
    assert holdings_of(seen, nothing, {}) == ((), ())
    assert work_of(seen, nothing, SETTINGS).requests == {}
