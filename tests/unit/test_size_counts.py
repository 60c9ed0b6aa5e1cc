"""Objects by size: the same buckets in every call, run and version."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.log.counts import SizeCounts, least_bytes
from compactor.partition.receipts import Counts
from compactor.report.charts import histogram
from tests.support.desk import Desk

SIZES = st.lists(st.integers(0, 5 << 40), max_size=30)


@given(SIZES)
def test_each_object_is_counted_once_in_the_bucket_that_its_size_falls_into(
    sizes: list[int],
) -> None:
    found = SizeCounts()
    found.count(sizes, ())
    assert sum(found.before) == len(sizes)
    for bucket, count in enumerate(found.before):
        between = range(least_bytes(bucket), least_bytes(bucket + 1))
        assert count == sum(size in between for size in sizes)
    assert not found.before or found.before[-1]


@given(SIZES, SIZES)
def test_what_a_replaced_commit_added_is_taken_away_again(kept: list[int], gone: list[int]) -> None:
    found, expected = SizeCounts(), SizeCounts()
    expected.count(kept, kept)
    found.count(kept, kept)
    found.count(gone, gone)
    found.count(gone, gone, -1)
    assert found == expected


def test_a_report_adds_up_the_sizes_of_its_partitions_and_draws_them() -> None:
    desk = Desk("a/", "b/")
    for path in ("a/", "b/"):
        counts = Counts(objects_in=3, objects_out=1)
        desk.receipt(path, counts=counts, sizes=SizeCounts([0] * 11 + [3], [0] * 12 + [1]))
    found = desk.report()
    assert found.sizes == SizeCounts([0] * 11 + [6], [0] * 12 + [2])
    page = desk.page.text
    assert "1 KiB to 2 KiB: 6 before" in page
    assert "2 KiB to 4 KiB: 2 after" in page


def test_heights_are_shares_of_their_side_and_the_few_can_be_seen_beside_the_many() -> None:
    chart = histogram([0] * 12 + [999_999, 1], [0] * 27 + [10])
    assert chart is not None
    heights = {one.sizes: (one.before, one.after) for one in chart.columns}
    assert heights["2 KiB to 4 KiB"] == pytest.approx((100, 0), abs=0.01)
    assert heights["64 MiB to 128 MiB"] == (0.0, 100.0)
    assert 1 <= heights["4 KiB to 8 KiB"][0] < 5


def test_objects_of_fewer_than_128_bytes_share_a_column() -> None:
    chart = histogram([1, 2, 3], [0] * 7 + [4])
    assert chart is not None
    assert [(one.sizes, one.objects_before, one.objects_after) for one in chart.columns] == [
        ("less than 128 B", 6, 4),
        ("128 B to 256 B", 0, 0),
    ]


def test_without_objects_there_is_no_chart() -> None:
    assert histogram([], [0, 0]) is None
