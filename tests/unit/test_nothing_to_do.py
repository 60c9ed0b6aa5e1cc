"""A run or plan that finds nothing to do says why in one line, and what helps."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest

from compactor.discovery.discover import discover
from compactor.discovery.forecast import Waiting
from compactor.errors import InvalidInput
from compactor.model import Skipped, SkipReason
from compactor.report.reasons import age_text, moment_text, nothing_to_do
from compactor_cli.commands.plan import forecast, headline_of
from compactor_cli.idle import require_source, window_warning
from tests.support.examples import LONG_AGO, NOW, PARTITION, settings
from tests.support.memory_store import MemoryStore
from tests.support.world import LOG_LINE, World

# 2027-01-15T08:00:00Z
WINDOW = {"date_format": "%Y/%m/%d", "window": "2026-03-10..2026-03-12"}
TYPED = {
    SkipReason.TOO_YOUNG: "younger than settle_seconds (600); a later run takes them, or give"
    " --settle-seconds 0",
    SkipReason.OPEN_PARTITION: "than six times settle_seconds (600); a later run takes them",
    SkipReason.TOO_FEW: "fewer of them than min_objects (1); wait for more, or give"
    " --min-objects 1",
    SkipReason.ARCHIVED: "restore them first",
    SkipReason.NOT_INCLUDED: "no pattern of include (*.log, *.gz); patterns are of keys below",
    SkipReason.EXCLUDED: "excluded by exclude (tmp/*); correct exclude if they should be compacted",
    SkipReason.OWN_STATE: "give a source that no run wrote",
    SkipReason.HIDDEN: "begins with _ or .; spell that out in a pattern of include",
    SkipReason.TABLE: "files of a table",
    SkipReason.REGISTRY: "parts of a registry of container images",
    SkipReason.CLIENT_ENCRYPTED: "decrypt them first",
    SkipReason.CLOUDTRAIL_DIGEST: "the events lie below CloudTrail/",
    SkipReason.QUARANTINED: "give other settings, or --retry-quarantined",
    SkipReason.UNPARTITIONED: "give another depth (now 0) or date_format",
    SkipReason.DEEPER_LEVEL: "give a depth or a date_format that reaches it",
    SkipReason.COMMITTED: "compacted already",
    SkipReason.OVERWRITTEN: "copy them under new keys; raise settle_seconds (now",
    SkipReason.EMPTY: "empty",
    SkipReason.DIRECTORY_MARKER: "markers of directories",
    SkipReason.GONE: "gone since their event",
}


@pytest.mark.parametrize("reason", SkipReason)
def test_each_reason_that_can_be_the_only_one_is_reported_with_its_way_out(reason):
    given = settings(include=["*.log", "*.gz"], exclude=["tmp/*"])
    line = nothing_to_do(given, {reason.value: Skipped(5_000, 1)}, typed=True)
    assert line.startswith("nothing to compact: 5,000 objects left: ")
    assert TYPED[reason] in line


def test_a_deployed_run_names_settings_and_not_options():
    line = nothing_to_do(settings(), {"quarantined": Skipped(1, 1)})
    assert line.startswith("nothing to compact: 1 object left: ")
    assert line.endswith("give other settings, or retry_quarantined: true")


def test_what_waits_is_reported_with_its_age_and_the_time_from_which_on_a_run_takes_it():
    waiting = Waiting(NOW - 40, NOW - 20, NOW + 560, NOW)
    given = settings()
    line = nothing_to_do(given, {"too_young": Skipped(5_000, 1)}, waiting=waiting, typed=True)
    assert line == (
        "nothing to compact: 5,000 objects left: younger than settle_seconds (600); the oldest is"
        " 40 s old, so a run from 08:10 UTC on takes them, or give --settle-seconds 0"
    )


def test_what_a_user_can_change_comes_before_what_is_done_already():
    skipped = {
        "already_committed": Skipped(9_000, 1),
        "too_young": Skipped(3, 1),
        "excluded": Skipped(4, 1),
        "empty": Skipped(1, 0),
    }
    line = nothing_to_do(settings(exclude=["x"]), skipped)
    assert line.index("4 objects left: excluded") < line.index("3 objects left: younger")
    assert line.endswith("; 9,001 objects for other reasons, see below")


def test_partitions_too_large_for_a_worker_are_reported_where_there_is_no_spark():
    line = nothing_to_do(settings(spark_engine="none"), {}, oversized=2)
    assert "2 partitions are larger than one worker may take, and spark_engine is none" in line


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({}, "no object below s3://source/logs/"),
        (WINDOW, "no object of the window below s3://source/logs/"),
        ({"listing": "events:table/logs"}, "no event named an object"),
    ],
)
def test_where_there_is_nothing_at_all_that_is_said(given, line):
    assert nothing_to_do(settings(**given), {}) == f"nothing to compact: {line}"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0 s"), (119, "119 s"), (120, "2 min"), (7_200, "2 h"), (172_800, "2 days")],
)
def test_ages_are_reported_as_a_person_says_them(seconds, text):
    assert age_text(seconds) == text


def test_a_time_of_another_day_has_its_date_and_no_run_comes_a_minute_early():
    assert moment_text(NOW + 1, NOW) == "08:01 UTC"
    assert moment_text(NOW + 86_400, NOW) == "2027-01-16 08:00 UTC"


def planned_headline(world: World) -> str:
    wanted, store = world.settings, world.store
    now = world.clock.now()
    found = discover(wanted, store, now)
    with patch("time.time", world.clock.now):
        return headline_of(wanted, found, forecast(found.partitions, wanted, store))


def test_the_time_that_plan_names_is_that_from_which_on_a_run_takes_them():
    world = World()
    world.add("a.log", LOG_LINE)
    for name, age in (("a.log", 50), ("b.log", 40)):
        body = world.store.contents("source", "").get(PARTITION.prefix + "a.log", b"x\n")
        world.store.seed("source", PARTITION.prefix + name, body, last_modified=NOW - age)
    line = planned_headline(world)
    assert "2 objects left: younger than settle_seconds (600); the oldest is 50 s old" in line
    # An hour behind the newest: until then what has settled lies in an open partition.
    assert "a run from 09:00 UTC on takes them" in line
    world.clock.advance(3_540)
    assert "six times settle_seconds" in planned_headline(world)
    world.clock.advance(60)
    assert planned_headline(world) == ""
    assert world.run().counts.objects_in == 2


# The source


def a_store(*keys: str) -> MemoryStore:
    store = MemoryStore()
    store.add_bucket("source")
    store.add_bucket("lake")
    for key in keys:
        store.seed("source", key, b"{}\n", last_modified=LONG_AGO)
    return store


def test_a_source_with_nothing_below_it_is_refused_with_what_the_bucket_has():
    store = a_store("raw/a", "lost+found/b", "note.txt", "_compactor/lake/identity.json")
    with pytest.raises(InvalidInput) as caught:
        require_source(settings(), store)
    assert str(caught.value) == (
        "there are no objects below s3://source/logs/: check the prefix; the bucket source has"
        " lost+found/, raw/, note.txt"
    )


def test_the_deepest_level_of_the_prefix_that_exists_is_shown():
    store = a_store("logs/app/2026/a", "logs/web/2026/a", "other/a")
    with pytest.raises(InvalidInput, match=r"the bucket source has logs/app/, logs/web/$"):
        require_source(settings(s3_source_uri="s3://source/logs/ap/2026/"), store)


def test_an_empty_bucket_is_said_to_be_empty():
    with pytest.raises(InvalidInput, match="the bucket source is empty"):
        require_source(settings(), a_store())


def test_sources_that_clean_up_deleted_are_no_mistake():
    world = World(settle_seconds=0)
    world.add("a.json", '{{"id": "{}"}}')
    world.run()
    (page,) = world.store.list_objects("source", PARTITION.prefix)
    assert not world.store.delete_sources(page).refused
    require_source(world.settings, world.store)
    with pytest.raises(InvalidInput, match="no objects below s3://source/lgos/"):
        require_source(
            settings(s3_source_uri="s3://source/lgos/", s3_state_uri=world.settings.s3_state_uri),
            world.store,
        )


# The window


def warned(store: MemoryStore, **given: Any) -> str:
    return window_warning(settings(**{**WINDOW, **given}), store, NOW)


def test_a_window_without_objects_is_reported_with_what_there_is_and_the_last_date():
    days = ["2025/12/31", "2026/02/28", "2026/05/02", "2026/04/30"]
    store = a_store(*(f"logs/{day}/a" for day in days))
    assert warned(store) == (
        "no object from 2026-03-10 to 2026-03-12 (%Y/%m/%d); below s3://source/logs/ there is"
        " 2025/, 2026/; the last is 2026/05/02/"
    )
    assert store.count("list_level") == 3


def test_of_many_prefixes_the_first_are_shown():
    store = a_store(*(f"logs/dt=2026-04-{day:02}/a" for day in range(1, 9)))
    line = warned(store, date_format="dt=%Y-%m-%d")
    assert line.endswith(", dt=2026-04-05/, ...; the last is dt=2026-04-08/")


def test_where_nothing_looks_like_a_date_wildcards_are_named():
    line = warned(a_store("logs/app/2026/01/01/a", "logs/web/a"))
    assert line.endswith(
        "there is app/, web/; give the levels above the dates as wildcards, such as"
        " s3://source/logs/*/"
    )


def test_a_source_without_prefixes_may_be_the_wrong_one():
    assert warned(a_store("logs/a")).endswith("check the source")


def test_wildcards_that_match_nothing_are_said_to():
    line = warned(a_store("logs/app/a"), s3_source_uri="s3://source/logs/x*/")
    assert line.endswith("no prefix matches s3://source/logs/x*/")
