"""Partitions whose compaction does not pay back are left, reported, and judged again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from compactor import prices
from compactor.clock import NoDeadline
from compactor.discovery.discover import discover
from compactor.errors import InvalidInput
from compactor.limits import WorkerLimits
from compactor.log.resting import looked_by
from compactor.model import Skipped, SkipReason
from compactor.runs.partition_receipts import Counts
from compactor.runs.run_partition import PartitionRun, record_partition
from compactor.settings.settings import Settings
from tests.support.examples import NOW, PARTITION, settings
from tests.support.memory_store import Crashed
from tests.support.world import World
from tests.unit.test_forecast import forecast_of

REASON = SkipReason.DOES_NOT_PAY.value


def world(days: float | None, count: int = 20, **given: Any) -> World:
    """Sources that a scan a day pays for in some weeks, and none never."""
    made = World(depth=3, pays_back_within_days=days, **given)
    for number in range(count):
        made.add(f"{number:03}.json", '{{"id": "{}"}}')
    return made


def test_without_the_setting_everything_is_compacted() -> None:
    here = world(None, scans_per_month=0)
    assert here.run().counts.objects_in == 20


@pytest.mark.parametrize(("scans", "objects_in"), [(0, 0), (30, 0), (30_000, 20)])
def test_a_partition_is_compacted_where_the_scans_pay_for_it_in_time(scans, objects_in) -> None:
    here = world(1, scans_per_month=scans)
    receipt = here.run()
    assert receipt.status == "done"
    assert receipt.counts.objects_in == objects_in
    assert (REASON in receipt.skipped) == (not objects_in)
    here.check()


def test_what_is_left_is_counted_shown_and_untouched() -> None:
    here = world(1, scans_per_month=0)
    before = here.store.contents("source")
    receipt = here.run()
    size = sum(len(body) for body in before.values())
    keys = tuple(sorted(before))
    assert receipt.skipped == {
        REASON: Skipped(20, size, keys[: len(receipt.skipped[REASON].examples)])
    }
    assert receipt.skipped[REASON].examples
    assert here.store.contents("source") == before
    assert here.store.contents("lake", "compacted/") == {}
    assert receipt.counts.requests.get("get", 0) == 0


def test_plan_shows_what_the_run_then_leaves() -> None:
    here = world(1, scans_per_month=0)
    found = forecast_of(here)
    told = {reason.value: one for reason, one in found.plan.skipped.items()}
    assert (found.plan.groups, told) == ((), here.run().skipped)


def test_what_did_not_pay_is_judged_again_with_what_came_later() -> None:
    here = world(1, count=2, scans_per_month=3_000)
    assert here.run().counts.objects_in == 0
    for number in range(100, 400):
        here.add(f"{number}.json", '{{"id": "{}"}}')
    receipt = here.run()
    assert (receipt.counts.objects_in, receipt.skipped) == (302, {})
    here.must_be_finished()


def test_a_commit_that_was_not_published_is_published_all_the_same() -> None:
    here = world(None)
    here.store.hooks.crash("before", "complete_upload")
    with pytest.raises(Crashed):
        here.run()
    here.store.hooks.clear()
    here.settings = replace(here.settings, pays_back_within_days=0.0, scans_per_month=0.0)
    assert here.run().counts.repaired == 1
    here.check()
    assert sum(here.destination().values()) == 60


def test_a_run_that_began_a_partition_sees_it_through() -> None:
    # Its first window pays; the second, alone, would not.
    limits = WorkerLimits(window_objects=300)
    here = world(1, count=302, scans_per_month=3_000, limits=limits)
    receipt = here.run()
    assert (receipt.counts.objects_in, receipt.skipped) == (302, {})


def test_a_call_that_continues_a_run_does_not_judge_what_is_left_of_it() -> None:
    here = world(None)
    assert here.run().counts.objects_in == 20
    here.add("z.json", '{{"id": "{}"}}')
    here.settings = replace(here.settings, pays_back_within_days=0.0, scans_per_month=0.0)
    run = PartitionRun(PARTITION, here.settings, here.store, here.clock, NoDeadline(), "run-1")
    assert record_partition(run, Counts()).counts.objects_in == 21
    here.add("zz.json", '{{"id": "{}"}}')
    assert here.run().skipped[REASON].objects == 1


def at_rest(here: World, now: float = NOW + 86_400) -> bool:
    found = discover(here.settings, here.store, now, committed=lambda partition: set())
    return bool(found.resting.partitions)


def rested() -> World:
    here = world(None)
    here.run()
    here.settings = replace(here.settings, pays_back_within_days=0.0, scans_per_month=0.0)
    here.add("z.json", '{{"id": "{}"}}')
    here.run()
    return here


def test_what_does_not_pay_is_at_rest_until_settings_prices_or_sources_change() -> None:
    here = rested()
    assert at_rest(here)
    found = discover(here.settings, here.store, NOW + 86_400, committed=lambda partition: set())
    assert found.resting.skipped[REASON].objects == 1
    usual = here.settings
    here.settings = replace(usual, scans_per_month=1e6)
    assert not at_rest(here)
    here.settings = usual
    with patch.object(prices, "every_price", lambda: ()):
        prices.prices_digest.cache_clear()
        assert not at_rest(here)
    prices.prices_digest.cache_clear()
    here.add("zz.json", '{{"id": "{}"}}')
    assert not at_rest(here)


def test_without_the_setting_prices_say_nothing_of_rest() -> None:
    usual = settings()
    before = looked_by(usual)
    with patch.object(prices, "every_price", lambda: ()):
        prices.prices_digest.cache_clear()
        assert looked_by(usual) == before
    prices.prices_digest.cache_clear()


def test_kept_sources_cost_what_storage_never_pays_back() -> None:
    # Ten sources of a GB that gzip would shrink to a fifth: they pay where they are deleted then.
    def left(**given: Any) -> bool:
        here = World(pays_back_within_days=3_650, scans_per_month=0, compression="gzip", **given)
        here.add("a.json", '{{"id": "{}"}}', 60_000)
        here.add("b.json", '{{"id": "{}"}}', 60_000)
        return not forecast_of(here).plan.groups

    assert left(clean_up="keep")
    assert not left(clean_up="delete", retention_days=0)


def test_it_is_refused_where_events_would_start_run_after_run() -> None:
    given = {
        "s3_source_uri": "s3://source/logs/",
        "s3_destination_uri": "s3://lake/compacted/",
        "listing": "events:table/stream",
    }
    Settings.from_input(given)
    with pytest.raises(InvalidInput, match=r"pays_back_within_days: 3.*null when listing"):
        Settings.from_input({**given, "pays_back_within_days": 3})
