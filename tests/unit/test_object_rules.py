"""Rules for plain objects: what they leave is never touched, and in quiet hours nothing is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.discovery.discover import discover
from compactor.errors import InvalidInput
from compactor.log.resting import read_rest
from compactor.model import SkipReason
from compactor.planning.key_rules import KeyRules
from compactor.planning.plan import Knowledge, plan
from compactor.settings.object_rules import ObjectRules
from compactor.settings.policies import read_policies
from compactor.settings.settings import Settings
from compactor_cli import commands as cli
from tests.support.cleaning import LINE, left, old_world, records
from tests.support.examples import NOW, PARTITION, listing, settings, source
from tests.support.memory_store import MemoryStore
from tests.support.world import World

HOUR = 3_600.0
# NOW is 08:00.
QUIET = {"match": ["s3://source/logs/*"], "quiet_hours": ["07:30-09:00"]}


def leaving(*patterns: str) -> list[dict[str, Any]]:
    return [{"match": list(patterns), "leave": True}]


def text(of: str) -> st.SearchStrategy[str]:
    return st.text(of, min_size=1, max_size=5)


PATTERNS = st.one_of(
    st.sampled_from(["*", "s3://b/*", "s3://*", "bronze.*", "glue:*", "delta:s3://b/*", "*.a"]),
    text("ab/*").map(lambda one: f"s3://b/{one}"),
)


@given(st.lists(PATTERNS, min_size=1, max_size=5), text("ab/"), text("ab/"))
def test_a_rule_found_for_a_partition_is_the_one_for_the_object(
    patterns: list[str], prefix: str, rest: str
) -> None:
    policies = read_policies([{"match": [one]} for one in patterns])
    found = ObjectRules(policies, "b", prefix).of(prefix + rest)
    assert found == policies.of(f"s3://b/{prefix}{rest}")


@pytest.mark.parametrize(
    ("patterns", "one"),
    [
        (["s3://source/*"], "rule 1 (s3://source/*)"),
        (["s3://other/*", "*.orders", "s3://source/logs/*"], "rule 3 (s3://source/logs/*)"),
        (["s3://source/logs/2025/*"], "no rule"),
        (["s3://source/logs/2026/01/02/debug/*"], None),
        (["s3://source/*/debug/*", "*"], None),
    ],
)
def test_most_partitions_have_one_rule_for_all_their_objects(
    patterns: list[str], one: str | None
) -> None:
    policies = read_policies([{"match": [pattern]} for pattern in patterns])
    found = ObjectRules(policies, PARTITION.bucket, PARTITION.prefix).one
    assert (found.text if found else None) == one


def test_the_first_rule_that_matches_allows_or_denies() -> None:
    rules = [
        {"match": ["s3://source/logs/2026/01/02/app/*"]},
        *leaving("s3://source/logs/*/*.audit.json", "s3://source/logs/2026/01/02/raw/*"),
    ]
    objects = [source("a.json"), source("app/b.audit.json"), source("c.audit.json")]
    decision = plan(
        listing(*objects, source("raw/d.json")), settings(policies=rules), Knowledge(), NOW
    )
    (group,) = decision.groups
    assert [one.key for one in group.sources] == [objects[0].key, objects[1].key]
    assert decision.skipped[SkipReason.RULE].objects == 2
    by_key = KeyRules(settings(policies=rules), PARTITION)
    assert by_key(objects[2]) is SkipReason.RULE


def test_in_quiet_hours_nothing_is_planned() -> None:
    asked, objects = settings(policies=[QUIET]), listing(source("a.json"))
    quiet = plan(objects, asked, Knowledge(), NOW)
    assert (quiet.groups, quiet.skipped[SkipReason.QUIET].objects) == ((), 1)
    assert plan(objects, asked, Knowledge(), NOW + 2 * HOUR).groups


def test_rules_of_tables_say_nothing_of_objects() -> None:
    rules = leaving("source.*", "glue:*", "delta:s3://source/*")
    assert plan(listing(source("a.json")), settings(policies=rules), Knowledge(), NOW).groups


def test_settings_with_rules_are_read_back_and_a_mistake_is_named() -> None:
    asked = settings(policies=[QUIET, *leaving("s3://source/a/*")])
    assert Settings.from_input(json.loads(json.dumps(asked.to_dict()))) == asked
    assert settings().to_dict()["policies"] == []
    with pytest.raises(InvalidInput, match=r"policies\[2\]\.leave: 'yes'"):
        settings(policies=[QUIET, {"match": ["*"], "leave": "yes"}])


# A run.


def seeded(*keys: str) -> MemoryStore:
    store = World().store
    for key in keys:
        store.seed("source", f"logs/{key}", b'{"id": 1}\n', last_modified=NOW - 86_400)
    return store


def found_in(store: MemoryStore, **fields: Any) -> Any:
    asked = settings(**{"depth": 1, **fields})
    return discover(asked, store, NOW, committed=lambda _: frozenset())


def test_a_partition_left_by_a_rule_is_counted_and_is_nobodys_work() -> None:
    store = seeded("app/1", "app/2", "audit/1", "audit/2", "audit/3", "audited/1")
    found = found_in(store, policies=leaving("s3://source/logs/audit/*"), lambda_max_objects=2)
    assert [item.path for item in found.items] == ["app/", "audited/"]
    assert found.oversized == ()
    skipped = found.resting.skipped
    assert {reason: one.objects for reason, one in skipped.items()} == {"left_by_a_rule": 3}
    assert skipped["left_by_a_rule"].examples[0] == "logs/audit/1"


def test_a_partition_in_its_quiet_hours_is_nobodys_work_now() -> None:
    store = seeded("app/1")
    assert found_in(store, policies=[QUIET]).items == ()
    assert found_in(store, policies=[QUIET]).resting.skipped["quiet_hours"].objects == 1
    later = {"match": ["s3://source/logs/*"], "quiet_hours": ["09:00-07:30"]}
    assert len(found_in(store, policies=[later]).items) == 1


def test_a_partition_of_which_a_rule_leaves_a_part_is_work() -> None:
    found = found_in(seeded("app/1"), policies=leaving("s3://source/logs/app/x*"))
    assert len(found.items) == 1


def test_a_run_touches_nothing_that_a_rule_leaves() -> None:
    world = World(policies=leaving("s3://source/logs/*secret*"))
    world.add("a.json", LINE)
    world.add("b-secret.json", LINE)
    reads: list[str] = []
    world.store.hooks.before.append(
        lambda call: reads.append(call.key) if call.name == "read_source" else None
    )
    receipt = world.run()
    assert receipt.skipped["left_by_a_rule"].objects == 1
    assert [key.rpartition("/")[2] for key in reads] == ["a.json"]
    assert sum(world.destination().values()) == 3


def test_what_waits_for_the_end_of_quiet_hours_is_not_at_rest() -> None:
    world = World(policies=[QUIET])
    world.add("a.json", LINE)
    assert world.run().skipped["quiet_hours"].objects == 1
    assert read_rest(world.settings, PARTITION, world.store) is None
    world.clock.advance(2 * HOUR)
    world.run()
    world.must_be_finished()


# Clean-up.


def with_rules(world: World, rules: list[dict[str, Any]]) -> World:
    world.settings = Settings.from_input({**world.settings.to_dict(), "policies": rules})
    return world


def test_clean_up_deletes_nothing_that_a_rule_leaves() -> None:
    world = with_rules(old_world(), leaving("s3://source/*"))
    receipt = world.clean_up()
    assert (receipt.status, receipt.counts.deleted) == ("done", 0)
    assert (left(world), records(world)) == (["a.json", "b.json"], {})
    # The rule gone, they go.
    assert with_rules(world, []).clean_up().counts.deleted == 2


def test_a_commit_with_one_source_that_a_rule_leaves_keeps_all() -> None:
    world = with_rules(old_world(), leaving("s3://source/*/b.json"))
    for _ in range(2):
        receipt = world.clean_up()
        assert (receipt.status, receipt.counts.deleted) == ("done", 0)
    assert (left(world), records(world)) == (["a.json", "b.json"], {})
    assert with_rules(world, []).clean_up().counts.deleted == 2


def test_in_quiet_hours_nothing_is_deleted() -> None:
    world = with_rules(old_world(), [QUIET])
    assert world.clean_up().counts.deleted == 0
    world.clock.advance(2 * HOUR)
    assert world.clean_up().counts.deleted == 2


# What a person sees.


def told(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert cli.main(["plan", "s3://source/logs/", "s3://lake/compacted/", *words]) == code
    captured = capsys.readouterr()
    return captured.err if code else captured.out


@pytest.fixture
def rules_file(tmp_path, monkeypatch):
    store = seeded("app/1.json", "app/debug-2.json", "audit/1.json")
    monkeypatch.setattr("compactor_cli.commands.plan.open_store", lambda *_: store)
    monkeypatch.setattr("time.time", lambda: NOW)
    path = tmp_path / "rules.json"
    path.write_text(
        json.dumps(
            [
                {"match": ["s3://source/logs/audit/*"], "leave": True},
                {"match": ["s3://source/logs/*/debug-*"], "leave": True},
                {"match": ["s3://source/logs/*"]},
            ]
        )
    )
    return str(path)


def test_a_plan_shows_which_rule_matched(rules_file, capsys):
    out = told(capsys, "--depth", "1", "--policies", rules_file)
    assert "rule 3 (s3://source/logs/*): 1 partition" in out
    assert "left_by_a_rule by rule 1 (s3://source/logs/audit/*): logs/audit/1.json" in out
    assert "left_by_a_rule by rule 2 (s3://source/logs/*/debug-*): logs/app/debug-2.json" in out
    shown = json.loads(told(capsys, "--depth", "1", "--policies", rules_file, "--json"))
    (app,) = shown["partitions"]
    assert (app["path"], app["objects"]) == ("app/", 1)
    assert app["rule"] == "rule 3 (s3://source/logs/*)"
    assert shown["totals"]["skipped"]["left_by_a_rule"] == 2


def test_rules_that_cannot_be_read_are_reported_in_one_line(rules_file, capsys, tmp_path):
    assert "policies: '/no/such' is not" in told(capsys, "--policies", "/no/such", code=2)
    assert "policies[1].leave" in told(
        capsys, "--policies", '[{"match": ["*"], "leave": 1}]', code=2
    )
