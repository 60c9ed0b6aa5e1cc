"""Runs thousands of schedules, and checks that broken promises would be noticed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from compactor_dev import IMPORT_ROOTS
from tests.simulation.choices import Choices, simplest
from tests.simulation.contents import MENU, contents, numbers
from tests.simulation.explore import explore_batch, shortest_story
from tests.simulation.explored import shortest
from tests.simulation.faults import Fault
from tests.simulation.ledger import DATA, LAKE, SOURCE, Ledger, Violation
from tests.simulation.mutations import MUTATIONS, NOTICED
from tests.simulation.schedule import play
from tests.simulation.turns import Outcome
from tests.support.memory_store import ManualClock, MemoryStore
from tests.support.sample import sample

REPOSITORY = Path(__file__).parents[2]
# 26 ms each on one processor. `make proof` runs all of them, `make test` a sample, `make soak` any
# number of others.
SCHEDULES = 6_000
SAMPLE = 750
MOST_FOR_A_GUARD = 2_000
# Enough to halve a story; `make soak` continues until nothing more can be removed.
PLAYS_FOR_A_STORY = 200
RETENTION = 7 * 86_400.0


def simulation(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation", *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(IMPORT_ROOTS), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_no_promise_is_broken_in_thousands_of_schedules(tmp_path, proof_directory):
    figures = (proof_directory or tmp_path) / "simulation.json"
    count = SCHEDULES if proof_directory else SAMPLE
    first = 0 if proof_directory else sample() * SAMPLE
    numbers = ("--schedules", str(count), "--first", str(first))
    done = simulation(*numbers, "--figures", str(figures))
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(figures.read_text(encoding="utf-8"))
    assert found["schedules"] == count
    assert found["violations"] == 0
    never = {fault for fault in Fault if fault is not Fault.NONE} - set(found["faults"])
    assert not never, f"faults that no schedule had: {never}"
    assert f"{count:,} schedules" in done.stdout.splitlines()[-1]


def test_a_seed_runs_the_same_schedule_in_any_process():
    stories = {simulation("--story", "11", PYTHONHASHSEED=seed).stdout for seed in ("1", "2")}
    (story,) = stories
    assert "publishes output" in story


def test_what_was_recorded_can_be_played_again():
    first = play(5)
    assert play(0, replay=first.recorded).faults == first.faults


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("name", MUTATIONS)
def test_the_simulation_notices_when_a_guard_is_removed(name, proof_directory):
    found = explore_batch(NOTICED[name], 1, name)
    if proof_directory or not found.violations:
        found = explore_batch(0, MOST_FOR_A_GUARD, name)
    assert found.violations, f"{found.schedules} schedules did not notice"
    assert "no error of ours" not in found.violations[0][1], "the mutation itself is broken"
    if proof_directory:
        path = proof_directory / "mutations.json"
        known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        known[name] = {"schedules": found.schedules, "violation": found.violations[0][1]}
        path.write_text(json.dumps(known), encoding="utf-8")


def test_a_broken_promise_is_reported_as_a_short_story(proof_directory):
    for first in (150, 300, 350) if proof_directory else (150,):
        _tell_what_is_deleted_too_early(first)


def _tell_what_is_deleted_too_early(first):
    mutation = MUTATIONS["HEAD before delete"]
    found = explore_batch(first, MOST_FOR_A_GUARD, "HEAD before delete")
    ((seed, violation),) = found.violations
    told = shortest_story(seed, mutation, plays=PLAYS_FOR_A_STORY)
    with mutation.applied():
        whole = play(seed, without=mutation.without)
    assert len(told.recorded) < len(whole.recorded) / 2
    assert "was deleted" in violation
    assert "VIOLATION" in told.story[-1]
    assert any("a producer puts" in line for line in told.story)
    assert any("deletes" in line for line in told.story)


def test_an_endless_exploration_is_refused():
    done = simulation()
    assert done.returncode == 2
    assert "--seconds or --schedules" in done.stderr


# The checks of the schedules.


@pytest.fixture
def s3() -> MemoryStore:
    store = MemoryStore(ManualClock())
    store.add_bucket(LAKE)
    return store


def written(s3: MemoryStore, ledger: Ledger, key: str, body: bytes) -> None:
    ledger.removing(key)
    ledger.written(body)
    s3.seed(SOURCE, key, body)
    ledger.producer_acted()
    ledger.look()


@pytest.fixture
def ledger(s3: MemoryStore) -> Ledger:
    made = Ledger(s3, RETENTION)
    written(s3, made, "a", b"record-1\n")
    return made


def test_a_record_in_two_outputs_is_noticed(s3, ledger):
    s3.seed(LAKE, DATA + "one", b"record-1\n")
    ledger.look()
    s3.seed(LAKE, DATA + "two", b"record-1\n")
    with pytest.raises(Violation, match="readable twice"):
        ledger.look()


def test_a_source_deleted_before_any_output_held_it_is_noticed(s3, ledger):
    s3.remove(SOURCE, "a")
    with pytest.raises(Violation, match="no output holds record 1"):
        ledger.look()


def test_a_source_deleted_within_its_retention_is_noticed(s3, ledger):
    s3.seed(LAKE, DATA + "one", b"record-1\n")
    ledger.look()
    s3.clock.advance(RETENTION - 1)
    s3.remove(SOURCE, "a")
    with pytest.raises(Violation, match="before its retention"):
        ledger.look()


def test_a_source_that_cannot_be_read_must_not_be_deleted(s3, ledger):
    written(s3, ledger, "broken", b"\x1f\x8b broken")
    s3.remove(SOURCE, "broken")
    with pytest.raises(Violation, match="no output can hold"):
        ledger.look()


def test_an_output_that_vanishes_is_noticed(s3, ledger):
    s3.seed(LAKE, DATA + "one", b"record-1\n")
    ledger.look()
    s3.remove(LAKE, DATA + "one")
    with pytest.raises(Violation, match="are no more"):
        ledger.look()


def test_a_record_that_was_not_written_by_a_run_is_noticed(s3, ledger):
    s3.seed(LAKE, DATA + "one", b"record-2\n")
    with pytest.raises(Violation, match="never written"):
        ledger.look()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"record-1 record-2\n", "are one to a reader"),
        (b'{"a":"record-1"}\n{"a":"record-1"}{"a":"record-2"}\n', "are one to a reader"),
        (b"Op,id,name\nI,1,record-1\nOp,id,name\n", "that nobody wrote"),
    ],
)
def test_records_that_are_glued_or_invented_are_noticed(s3, ledger, body, said):
    s3.seed(LAKE, DATA + "one", body)
    with pytest.raises(Violation, match=said):
        ledger.look()


def test_an_output_of_what_must_be_left_alone_is_noticed(s3, ledger):
    ledger.written(b"<a>record-2</a>", joined=False)
    s3.seed(LAKE, DATA + "one", b"<a>record-2</a>\n")
    with pytest.raises(Violation, match="must be left alone"):
        ledger.look()


@pytest.mark.parametrize("name", [name for names in MENU.values() for name in names])
def test_contents_of_a_kind_have_one_length_and_their_own_numbers(name):
    kind = contents(name)
    assert len(kind.numbered(7)) == len(kind.numbered(4_321)) > 40
    assert sorted(numbers(kind.numbered(7))) == [*range(7, 7 + kind.records)]
    assert kind.records >= 1


def test_what_a_producer_takes_back_before_it_is_compacted_is_nobodys_loss(s3, ledger):
    ledger.removing("a")
    s3.remove(SOURCE, "a")
    ledger.producer_acted()
    ledger.look()


# Shorter stories.


def test_the_simplest_list_of_decisions_keeps_only_what_it_takes_to_fail():
    def fails(recorded: Sequence[int]) -> bool:
        return 7 in recorded and 3 in recorded

    assert simplest([1, 7, 5, 5, 3, 2, 2, 7], fails) == [7, 3] or fails(
        simplest([1, 7, 5, 5, 3, 2, 2, 7], fails)
    )
    assert len(simplest([1, 7, 5, 5, 3, 2, 2, 7], fails)) == 2


def test_the_shortest_story_is_not_that_of_a_short_list_that_is_played_for_long():
    def player(seed: int, *, replay: Sequence[int] | None = None, tell: bool = False) -> Outcome:
        recorded = [5, 7, 5] if replay is None else [*replay] or [0] * 10
        broken = "broken" if 7 in recorded or len(recorded) == 10 else ""
        return Outcome(violation=broken, recorded=recorded)

    assert shortest(player, 1).recorded == [7]


def test_decisions_that_are_missing_are_the_dullest():
    choices = Choices(1, replay=[9])
    assert choices.one_of(["a", "b", "c"]) == "c", "a number too large is the last"
    assert choices.one_of(["a", "b", "c"]) == "a"
    assert not choices.chance(1.0)
