"""When a table is due: it has too many files, the date has come, or its scans are slow."""

from __future__ import annotations

from typing import Any

import pytest

from compactor.errors import InvalidInput
from compactor_tables.due_tables import Due, decide_due
from compactor_tables.measures import DataFile, PartitionMeasure, TableMeasure
from compactor_tables.policies import Rule, read_policies

NOW, DAY = 1_795_000_000.0, 86_400.0
SLOW = {"athena_workgroup": "reports", "slower_than_seconds": 20}


def rule(**fields: Any) -> Rule:
    return read_policies([{"match": ["*"], **fields}]).rules[0]


class Scans:
    """Scans by the time of their begin, newest first."""

    def __init__(self, *scans: tuple[float, float]) -> None:
        self.scans = scans

    def last(self, count: int, since: float) -> list[float]:
        return [seconds for began, seconds in self.scans if began > since][:count]


def decided(fields: Any, *seconds: float, maintained: float | None = NOW - 9 * DAY) -> Due:
    """Decide for a table of ten files with one scan a day."""
    measure = TableMeasure("glue:a.b", "1", 1 << 27, (PartitionMeasure("", (DataFile(9),) * 10),))
    scans = Scans(*((NOW - day * DAY, one) for day, one in enumerate(seconds)))
    return decide_due(rule(**fields), measure, maintained, NOW, scans)


def test_a_rule_that_does_not_say_when_makes_no_table_due() -> None:
    assert decided({}) == Due(
        False, "its rule has none of files_over, every and slower_than_seconds"
    )


def test_so_many_files_make_a_table_due() -> None:
    assert decided({"files_over": 9}) == Due(True, "10 files are more than 9")
    assert not decided({"files_over": 10}).is_due


@pytest.mark.parametrize(
    ("maintained", "is_due"), [(None, True), (NOW - 2 * DAY, True), (NOW - DAY, False)]
)
def test_the_date_makes_a_table_due(maintained: float | None, is_due: bool) -> None:
    decision = decided({"every": 2}, maintained=maintained)
    assert decision.is_due is is_due
    assert decision.reason == (
        "the date has come: every 2 days"
        if is_due
        else "it has 10 files, and the date has not come"
    )


def test_a_table_is_due_when_the_median_of_its_last_scans_is_too_long() -> None:
    assert decided(SLOW, 21.0, 19.0, 30.0) == Due(
        True, "the median of the last 3 scans is 21.0 s, over 20 s"
    )
    assert decided(SLOW, 20.0) == Due(
        False, "the median of the last 1 scans is 20.0 s, not over 20 s"
    )


def test_one_slow_scan_among_many_makes_no_table_due() -> None:
    assert not decided(SLOW, 500.0, *[10.0] * 6).is_due


def test_only_the_last_seven_scans_count() -> None:
    assert decided(SLOW, *[25.0] * 4, *[1.0] * 30, maintained=None).is_due


def test_scans_before_the_last_maintenance_do_not_count() -> None:
    assert decided(SLOW, 10.0, 99.0, 99.0, maintained=NOW - DAY).is_due is False
    assert decided(SLOW, 99.0, maintained=NOW) == Due(
        False, "nothing has scanned it since its last maintenance"
    )


@pytest.mark.parametrize("field", [*SLOW])
def test_a_workgroup_and_a_limit_belong_together(field: str) -> None:
    with pytest.raises(InvalidInput, match="both athena_workgroup and slower_than_seconds"):
        rule(**{field: SLOW[field]})
