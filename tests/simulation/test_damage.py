"""Each object of the state damaged after each request of a few scenarios."""

from __future__ import annotations

import json

import pytest

from compactor.log.log import CommitLog
from tests.simulation.damage import SCENARIOS, Damage, Kind, damages, figures, try_all, try_out
from tests.support.sample import sample

# Some seconds on one processor, `make damage` and `make proof` try all.
EVERY = 41


@pytest.mark.timeout(3_600)
def test_whatever_happens_to_an_object_of_the_state_doubles_and_loses_nothing(proof_directory):
    tried = try_all() if proof_directory else try_all(EVERY, first=sample() % EVERY)
    assert not tried.problems, tried.problems[0]
    assert set(tried.kinds) == set(Kind) - {Kind.EARLIER}, "nothing of the state is written twice"
    assert 0 < tried.stopped < tried.damages
    if proof_directory:
        path = proof_directory / "damage.json"
        path.write_text(json.dumps(figures(tried)), encoding="utf-8")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_that_nobody_disturbs_ends_well(scenario):
    assert try_out(Damage(scenario, 0, Kind.DELETED)) == ""


def test_a_run_that_believes_any_log_is_noticed(monkeypatch):
    monkeypatch.setattr(CommitLog, "require_whole", lambda *_: None)
    tried = try_all(EVERY, ["a second run with new sources"])
    assert any("readable twice" in problem for _, problem in tried.problems)


def test_each_object_is_damaged_after_each_request_from_its_writing_on():
    found = [one for one in damages("a first run") if one.kind is Kind.DELETED]
    by_name: dict[str, list[int]] = {}
    for one in found:
        by_name.setdefault(one.key.rpartition("/")[2], []).append(one.after)
    last = max(one.after for one in found)
    assert set(by_name) == {
        "identity.json",
        f"{1:020d}.json",
        *(f"{n:020d}.json.gz" for n in (1, 2)),
        f"{2:020d}.checkpoint.json.gz",
    }
    assert all(
        range(min(after), last + 1) == range(after[0], after[0] + len(after))
        for after in by_name.values()
    )
