"""Damages each object of the state after each request of a few scenarios."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import pytest

from compactor.log.log import CommitLog
from tests.simulation.damage import SCENARIOS, Damage, Kind, damages, figures, try_all, try_out
from tests.support.sample import sample

# Takes a few seconds on one processor; `make damage` and `make proof` try all damages.
EVERY = 41


def problems_of(several: Iterable[Damage]) -> Iterator[str]:
    for one in several:
        try:
            try_out(one)
        except AssertionError as error:
            yield str(error)


@pytest.mark.timeout(3_600)
def test_whatever_happens_to_an_object_of_the_state_doubles_and_loses_nothing(proof_directory):
    tried = try_all() if proof_directory else try_all(EVERY, first=sample() % EVERY)
    assert not tried.problems, tried.problems[0]
    # Only the record of a partition at rest is written twice, and it is not part of the log.
    assert set(tried.kinds) == set(Kind)
    assert 0 < tried.stopped < tried.damages
    if proof_directory:
        path = proof_directory / "damage.json"
        path.write_text(json.dumps(figures(tried)), encoding="utf-8")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_that_nothing_disturbs_ends_well(scenario):
    assert try_out(Damage(scenario, 0, Kind.DELETED)) == ""


def test_a_run_that_believes_any_log_is_noticed(monkeypatch):
    monkeypatch.setattr(CommitLog, "require_whole", lambda *_: None)
    restored = [
        one for one in damages("a second run with new sources") if one.kind is Kind.ALL_EARLIER
    ]
    assert any("readable twice" in problem for problem in problems_of(restored))


def test_an_entry_without_a_witness_is_noticed(monkeypatch):
    def leave_none(*_: object, **__: object) -> None:
        """Write no witness."""

    monkeypatch.setattr("compactor.log.log.leave_witness", leave_none)
    overtaken = [one for one in damages("a first run") if one.kind is Kind.OVERTAKEN]
    entries = [one for one in overtaken if one.key.endswith(f"{1:020d}.json.gz")]
    assert any("readable twice" in problem for problem in problems_of(entries))


def test_each_object_is_damaged_after_each_request_from_its_writing_on():
    found = [one for one in damages("a first run") if one.kind is Kind.DELETED]
    by_name: dict[str, list[int]] = {}
    for one in found:
        by_name.setdefault(one.key.rpartition("/")[2], []).append(one.after)
    last = max(one.after for one in found)
    assert set(by_name) == {
        "identity.json",
        "at-rest.json",
        f"{1:020d}.json",
        *(f"{n:020d}.json.gz" for n in (1, 2)),
        *(f"{n:020d}.witness.json" for n in (1, 2)),
        f"{2:020d}.checkpoint.json.gz",
    }
    assert all(
        range(min(after), last + 1) == range(after[0], after[0] + len(after))
        for after in by_name.values()
    )
