"""When a table is due: it became slow, has too many files, or the date has come."""

from __future__ import annotations

from typing import Any

from compactor.ports import RunTime
from compactor_tables.due_tables import is_due
from compactor_tables.latency import LatencySource, estimated_seconds
from compactor_tables.measures import DataFile, PartitionMeasure, TableMeasure
from compactor_tables.observations import (
    AVERAGED,
    History,
    Look,
    Maintained,
    by_day,
    look_of,
)
from compactor_tables.observing import with_latency
from compactor_tables.policies import Rule, read_policies

NOW = 1_795_000_000.0
DAY, HOUR = 86_400.0, 3_600.0
JOB = "glue_job:nightly"


def rule(**given: Any) -> Rule:
    return read_policies([{"match": ["*"], "latency": JOB, **given}]).rules[0]


def table(files: int = 10, size: int = 100, **given: Any) -> TableMeasure:
    partition = PartitionMeasure("", tuple(DataFile(size) for _ in range(files)))
    return TableMeasure("glue:a.b", "1", 1 << 27, (partition,), **given)


def seen(at: float, latency: float | None, size: int = 1_000, source: str = JOB) -> Look:
    return Look(at=at, bytes=size, latency=latency, samples=1, source=source, run_id=f"r{at}")


def compacted(at: float, files: int = 9) -> Look:
    done = Maintained(engine="spark", status="done", files=files, into=1)
    return Look(at=at, run_id=f"m{at}", maintained=done)


def history(*latencies: float | None, size: int = 1_000) -> History:
    """A compaction, and daily looks after it until now."""
    first = NOW - len(latencies) * DAY
    looks = [seen(first + (n + 1) * DAY, one, size) for n, one in enumerate(latencies)]
    return History((compacted(first), *looks))


def test_a_table_is_due_when_the_average_exceeds_the_best_after_a_compaction_by_the_share() -> None:
    slow = is_due(rule(slower_by=0.25), table(), history(10.0, 12.0, 16.0), NOW)
    assert slow
    assert "12.7 s on average of 3 looks: over the best after a compaction, 10.0 s" in slow.reason
    assert not is_due(rule(slower_by=0.27), table(), history(10.0, 12.0, 16.0), NOW)


def test_one_slow_run_among_many_makes_no_table_due() -> None:
    assert is_due(rule(), table(), history(*[10.0] * 6, 25.0), NOW).is_due is not True
    assert is_due(rule(), table(), history(*[10.0] * 6, *[25.0] * 3), NOW)


def test_the_average_is_of_the_last_looks_since_the_last_compaction() -> None:
    looks = history(*[90.0] * 3, *[10.0] * AVERAGED)
    found = looks.average(JOB)
    assert found is not None
    assert (found.seconds, found.looks) == (10.0, AVERAGED)
    later = History((*looks.looks, compacted(NOW + 1), seen(NOW + 2, 7.0)))
    again = later.average(JOB)
    assert again is not None
    assert (again.seconds, again.looks) == (7.0, 1)


def test_runs_before_the_first_compaction_are_not_what_is_compared_with() -> None:
    before = [seen(NOW - 30 * DAY, 1.0), compacted(NOW - 20 * DAY)]
    assert not is_due(rule(), table(), History((*before, *history(10.0, 10.5).looks[1:])), NOW)


def test_a_compaction_that_did_not_help_is_compared_with_an_earlier_one_that_did() -> None:
    looks = (compacted(NOW - 9 * DAY), seen(NOW - 8 * DAY, 10.0), compacted(NOW - 2 * DAY))
    assert is_due(rule(), table(), History((*looks, seen(NOW, 20.0))), NOW)


def test_twice_the_data_may_take_twice_the_time() -> None:
    large, larger = table(8, 1 << 30), table(16, 1 << 30)
    grown = History((*history(10.0, size=8 << 30).looks, seen(NOW + DAY, 28.0, size=16 << 30)))
    assert not is_due(rule(), larger, grown, NOW + DAY)
    assert is_due(rule(), large, grown, NOW + DAY)


def test_a_small_table_may_not_take_longer_for_files_that_fit_into_one() -> None:
    grown = History((*history(10.0, size=1_000).looks, seen(NOW + DAY, 28.0, size=10_000)))
    assert is_due(rule(), table(100), grown, NOW + DAY)


def test_nothing_is_due_when_nothing_would_change() -> None:
    told = is_due(
        rule(files_over=1, every=1), table(), history(10.0, 99.0), NOW, nothing_to_do=True
    )
    assert (told.is_due, told.reason) == (False, "nothing would change: the plan has no step")


def test_a_table_that_was_never_compacted_is_due() -> None:
    told = is_due(rule(), table(), History((seen(NOW - DAY, 3.0),)), NOW)
    assert told.is_due
    assert "never compacted" in told.reason


def test_a_run_that_rewrote_nothing_is_no_compaction_and_yet_counts_for_the_date() -> None:
    looks = History((compacted(NOW - DAY, files=0), seen(NOW, 3.0)))
    assert "never compacted" in is_due(rule(), table(), looks, NOW).reason
    assert looks.maintained == NOW - DAY


def test_so_many_files_make_a_table_due() -> None:
    assert is_due(rule(files_over=9), table(10), history(10.0), NOW).reason == (
        "10 files are more than 9"
    )
    assert not is_due(rule(files_over=10), table(10), history(10.0), NOW)


def test_the_date_makes_a_table_due() -> None:
    assert is_due(rule(every=1), table(), history(10.0), NOW).reason.endswith("every 1 days")
    assert not is_due(rule(every=1.5), table(), history(10.0), NOW)


def test_where_nothing_ran_since_the_last_compaction_nothing_is_due() -> None:
    assert "nothing ran" in is_due(rule(), table(), history(None, None), NOW).reason
    other = History((*history(10.0).looks, compacted(NOW + 1)))
    assert not is_due(rule(), table(), other, NOW + 2)


def test_runs_of_another_source_are_not_compared_with() -> None:
    looks = History((*history(10.0).looks, seen(NOW + 1, 99.0, source="athena:x")))
    assert not is_due(rule(), table(), looks, NOW + 1)


def test_the_estimate_needs_no_run_of_anybody() -> None:
    few, many = table(10), table(10_000)
    by_estimate = rule(latency="estimate")
    after = with_latency(look_of(few, NOW - DAY, "a"), few, "estimate", History(), None)
    looks = History((compacted(NOW - 2 * DAY), after))
    assert not is_due(by_estimate, few, looks, NOW)
    # The average of today and of the day before is what counts.
    assert is_due(by_estimate, many, looks, NOW)
    assert estimated_seconds(many) > 100 * estimated_seconds(few)


class _Times:
    def __init__(self, *found: RunTime) -> None:
        self.found = found
        self.asked: list[tuple[float, float]] = []

    def since(self, start: float, end: float) -> list[RunTime]:
        self.asked.append((start, end))
        return [one for one in self.found if start < one.began <= end]


def test_a_look_shows_the_average_of_what_ran_since_the_look_before() -> None:
    times = _Times(RunTime(NOW - 3, 30.0), RunTime(NOW - 9, 10.0), RunTime(NOW - DAY, 99.0))
    looks = History((compacted(NOW - 3_600),))
    told = with_latency(look_of(table(), NOW, "r"), table(), JOB, looks, times)
    assert (told.latency, told.samples, told.source) == (20.0, 2, JOB)
    assert times.asked == [(NOW - 3_600, NOW)]
    none = with_latency(look_of(table(), NOW, "r"), table(), JOB, looks, _Times())
    assert (none.latency, none.source) == (None, JOB)


def test_days_that_lie_back_are_summed_up_and_compactions_stay_between() -> None:
    # NOW is at 11:06 of its day.
    day = [seen(NOW + n, float(n)) for n in range(3)]
    looks = [*day, compacted(NOW + 3), compacted(NOW + 4), seen(NOW + 5, 7.0), seen(NOW + DAY, 8.0)]
    summed = by_day(looks)
    assert [(one.looks, one.latency) for one in summed] == [
        (3, 1.0),
        (2, None),
        (1, 7.0),
        (1, 8.0),
    ]
    work = summed[1].maintained
    assert work is not None
    assert (work.runs, work.files, work.into) == (2, 18, 2)
    assert summed[0].samples == 3
    averages = [len(one) for one in History(tuple(summed)).averages(JOB)]
    assert averages == [1, 2]


def test_a_source_is_read_from_its_text() -> None:
    assert LatencySource.parse("emr_step:j-1AB/day/load") == LatencySource(
        "emr_step", "j-1AB", "day/load"
    )
    assert LatencySource.parse("athena:primary") == LatencySource("athena", "primary")
    assert LatencySource.parse("glue_job:a/b") == LatencySource("glue_job", "", "a/b")
