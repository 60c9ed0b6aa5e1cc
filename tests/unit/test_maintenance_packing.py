"""What a rewrite of a table would take: the rules of the engines, by example."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.sizes import GIB, MIB
from compactor_tables.measures import DataFile, histogram
from compactor_tables.rewrite_packing import DeltaPacking, IcebergPacking, Rewrite, into_number

ICEBERG = IcebergPacking(target_bytes=512 * MIB)
DELTA = DeltaPacking(target_bytes=128 * MIB)

SIZES = st.lists(st.integers(1, 3 * GIB), max_size=40)


def files(*sizes: int) -> list[DataFile]:
    return [DataFile(size, rows=100) for size in sizes]


def test_small_files_become_one() -> None:
    assert ICEBERG.rewrites(files(*[MIB] * 10)) == Rewrite(10, 10 * MIB, 1)
    assert DELTA.rewrites(files(*[MIB] * 10)) == Rewrite(10, 10 * MIB, 1)


def test_iceberg_leaves_four_small_files_and_delta_takes_two() -> None:
    assert ICEBERG.rewrites(files(*[MIB] * 4)) == Rewrite()
    assert DELTA.rewrites(files(MIB, MIB)) == Rewrite(2, 2 * MIB, 1)


@pytest.mark.parametrize("packing", [ICEBERG, DELTA], ids=["Iceberg", "Delta"])
def test_what_has_its_size_is_left(packing: IcebergPacking | DeltaPacking) -> None:
    assert packing.rewrites(files(*[packing.target_bytes] * 8)) == Rewrite()


def test_iceberg_divides_what_is_too_large_and_delta_does_not() -> None:
    assert ICEBERG.rewrites(files(GIB)) == Rewrite(1, GIB, 2)
    assert DELTA.rewrites(files(GIB)) == Rewrite()


def test_a_file_with_many_deleted_rows_is_rewritten_by_iceberg_even_alone() -> None:
    worn = DataFile(512 * MIB, rows=100, deleted=30, deletes=1)
    assert ICEBERG.rewrites([worn]) == Rewrite(1, 512 * MIB, 1)
    assert ICEBERG.rewrites([worn._replace(deleted=29)]) == Rewrite()


def test_delta_takes_a_large_file_with_deleted_rows_beside_others() -> None:
    worn = DataFile(128 * MIB, rows=100, deleted=6, deletes=1)
    assert DELTA.rewrites([worn, *files(MIB)]) == Rewrite()
    twice = DeltaPacking(target_bytes=256 * MIB)
    assert twice.rewrites([worn, *files(MIB)]) == Rewrite(2, 129 * MIB, 1)


@pytest.mark.parametrize(
    ("size", "outputs"),
    [
        (511 * MIB, 1),
        (512 * MIB, 1),
        # A tenth more is spread, a fifth more is a file of its own.
        (550 * MIB, 1),
        (620 * MIB, 2),
        (5 * 512 * MIB + 100 * MIB, 5),
        (5 * 512 * MIB + 400 * MIB, 6),
    ],
)
def test_iceberg_spreads_a_remainder_that_is_no_file_of_its_own(size: int, outputs: int) -> None:
    assert ICEBERG.outputs(size) == outputs


@pytest.mark.parametrize(
    ("sizes", "outputs"),
    [
        # Of row groups that are no more than a file, none is divided among tasks.
        ([100] * 10, 2),
        ([300] * 10, 7),
        ([90] * 40, 8),
        # One file for each task, and for what is too large for one.
        ([1_000], 2),
        ([2_000, 10, 10], 4),
    ],
)
def test_iceberg_writes_as_many_files_as_tasks_read_row_groups(
    sizes: list[int], outputs: int
) -> None:
    assert ICEBERG.rewrites(files(*[one * MIB for one in sizes])).into == outputs


def test_deleted_rows_take_no_room_in_what_iceberg_writes() -> None:
    # Of one row group, which one task reads.
    worn = DataFile(120 * MIB, rows=100, deleted=40, deletes=1)
    packing = IcebergPacking(target_bytes=64 * MIB)
    assert packing.rewrites([worn]).into == 1
    assert packing.rewrites([worn._replace(deleted=10)]).into == 2


def test_delta_packs_the_smallest_first() -> None:
    assert DELTA.rewrites(files(*[100 * MIB, 20 * MIB, 30 * MIB, 90 * MIB])) == Rewrite(
        2, 50 * MIB, 1
    )


def test_a_number_of_files_is_written_only_where_there_are_more() -> None:
    assert into_number(files(5, 6, 7), 2) == Rewrite(3, 18, 2)
    assert into_number(files(5, 6), 2) == Rewrite()


@given(SIZES)
def test_a_rewrite_takes_no_more_than_there_is(sizes: list[int]) -> None:
    for packing in (ICEBERG, DELTA):
        found = packing.rewrites(files(*sizes))
        assert found.files <= len(sizes)
        assert found.bytes <= sum(sizes)
        assert bool(found.files) == bool(found.into)


@given(SIZES)
def test_optimize_never_leaves_more_files_than_it_found(sizes: list[int]) -> None:
    found = DELTA.rewrites(files(*sizes))
    assert 2 * found.into <= found.files


def test_a_histogram_counts_each_size_once() -> None:
    found = histogram([1, 1 << 16, (1 << 16) + 1, 5 * GIB])
    assert found == [2, 1, 0, 0, 0, 0, 1]
