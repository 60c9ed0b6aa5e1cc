"""Damages each object of the state after each step of a few scenarios."""

from __future__ import annotations

import json

import pytest

from compactor.log.log import CommitLog
from tests.simulation.damage import SCENARIOS, Damage, Kind, damages, figures, try_all, try_out
from tests.support.sample import sample

# Takes a few seconds; `make proof` tries all damages.
EVERY = 11


@pytest.mark.timeout(600)
def test_whatever_happens_to_an_object_of_the_state_doubles_and_loses_nothing(proof_directory):
    tried = try_all() if proof_directory else try_all(EVERY, sample() % EVERY)
    assert not tried.problems, tried.problems[0]
    assert set(tried.kinds) == set(Kind)
    assert 0 < tried.stopped < tried.damages
    if proof_directory:
        path = proof_directory / "damage.json"
        path.write_text(json.dumps(figures(tried)), encoding="utf-8")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_that_nothing_disturbs_ends_well(scenario):
    assert try_out(Damage(scenario, 0, Kind.DELETED)) == ""


def test_a_run_that_believes_an_empty_log_is_noticed(monkeypatch):
    monkeypatch.setattr(CommitLog, "require_whole", lambda *_: None)
    emptied = [
        damage
        for damage in damages("a second run with new sources")
        if damage.kind is Kind.LOG_DELETED
    ]
    for damage in emptied:
        with pytest.raises(AssertionError, match="readable twice"):
            try_out(damage)


def test_a_run_that_believes_a_log_with_a_gap_is_noticed(monkeypatch):
    monkeypatch.setattr("compactor.log.numbered.require_unbroken", lambda *_: None)
    monkeypatch.setattr("compactor.cleaning.decide.require_unbroken", lambda *_: None)
    lost = (one for one in damages("a first run") if one.kind is Kind.DELETED)
    newest = [one for one in lost if one.key.endswith(f"{2:020d}.json.gz")]
    assert newest
    assert not any(try_out(one) for one in newest)
