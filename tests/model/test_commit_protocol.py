"""Visits every state of the commit protocol; each removed guard has a shortest trace to a fault."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from tests.model.clean_up import Cleaner, Query
from tests.model.commit_protocol import GUARDS, commit_protocol
from tests.model.explore import Explored, explore
from tests.model.figures import IN_PROOF, keep_figures
from tests.model.partition_worker import Worker
from tests.model.processes import DELAYED, State
from tests.model.s3_world import Entry, World

A, B, C = Worker("A"), Worker("B"), Worker("C")
A_SHORT = A._replace(most=1)
CLEAN_UP, QUERY = Cleaner("clean-up"), Query("query")
RETENTION, LIFECYCLE = "retention_passes", "upload_aborted"
BOTH = World(sources=frozenset({"a1", "b1"}), written=frozenset({"a1", "b1"}))


class Start(NamedTuple):
    """The processes of a search, and the events that may happen."""

    actors: tuple[Any, ...]
    events: tuple[str, ...]
    world: World = World()
    loses_answers: bool = False


# The whole log of a published output was deleted.
EMPTIED = World(outputs=frozenset({("a1", frozenset({"a1"}))}), spoiled=True)
# The first of two entries was deleted, or the only one of which there is a checkpoint.
GAP = World(
    sources=frozenset({"a1", "b1"}),
    written=frozenset({"a1", "b1"}),
    log=(None, Entry("B1", "b1", frozenset({"b1"}), frozenset({"b1"}))),
    outputs=frozenset({("a1", frozenset({"a1"})), ("b1", frozenset({"b1"}))}),
    committed=frozenset({"A1", "B1"}),
    spoiled=True,
)
SHORTENED = EMPTIED._replace(checkpoint=1, committed=frozenset({"A1"}))
# An output was deleted after it was published.
OUTPUT_GONE = World(
    log=(Entry("A1", "a1", frozenset({"a1"}), frozenset({"a1"})),),
    checkpoint=1,
    aged=1,
    aged_checkpoint=1,
    committed=frozenset({"A1"}),
    spoiled=True,
)

STARTS = {
    "two workers, answers lost": Start((A, B), ("b1",), loses_answers=True),
    "late and overwritten sources": Start((A, B), ("b1", "a2")),
    "a source delivered again": Start((A, B), ("a1'", "b1")),
    "delivered again, uploads lost": Start((A, B), ("a1'", LIFECYCLE)),
    "delivered again, clean-up": Start((A, CLEAN_UP), (RETENTION, "a1'", LIFECYCLE)),
    "uploads lost, sources overwritten": Start((A, B), ("a2", LIFECYCLE)),
    "time for one source of two": Start((A_SHORT, B), (LIFECYCLE,), world=BOTH),
    "requests that arrive late": Start((A, B), ("b1", DELAYED)),
    "clean-up and query": Start((A, CLEAN_UP, QUERY), (RETENTION, "b1", "a2")),
    "two workers, clean-up, query": Start((A, B, CLEAN_UP, QUERY), (RETENTION,)),
    "two clean-ups": Start(
        (A, CLEAN_UP, Cleaner("another")), (RETENTION, "a2"), loses_answers=True
    ),
    "deletes that arrive late": Start((A, CLEAN_UP), (RETENTION, "a2", DELAYED)),
    "an output deleted": Start((A, CLEAN_UP), ("b1", RETENTION), world=OUTPUT_GONE),
    "the log deleted": Start((A, B, CLEAN_UP), ("b1", RETENTION), world=EMPTIED),
    "the first entry deleted": Start((A, B, CLEAN_UP), ("c1", RETENTION), world=GAP),
    "the only entry deleted": Start((A, B, CLEAN_UP), ("b1", RETENTION), world=SHORTENED),
    "bytes flipped": Start((A, B), ("bytes_flipped",), loses_answers=True),
    "an output's key taken": Start((A, B), ("key_taken",), loses_answers=True),
}
LARGE = {
    "three workers": Start((A, B, C), (LIFECYCLE,)),
    "delivered again, overwritten, uploads lost": Start((A, B), ("a1'", "a2", LIFECYCLE)),
    "late, overwritten, uploads lost": Start((A, B), ("b1", "a2", LIFECYCLE)),
    "clean-up, overwritten": Start((A, B, CLEAN_UP), (RETENTION, "a2")),
}
STATES = {
    "two workers, answers lost": 4_909,
    "late and overwritten sources": 8_195,
    "a source delivered again": 8_195,
    "delivered again, uploads lost": 8_823,
    "delivered again, clean-up": 521,
    "uploads lost, sources overwritten": 8_823,
    "time for one source of two": 6_569,
    "requests that arrive late": 15_207,
    "clean-up and query": 1_841,
    "two workers, clean-up, query": 4_328,
    "two clean-ups": 628,
    "deletes that arrive late": 594,
    "an output deleted": 353,
    "the log deleted": 296,
    "the first entry deleted": 32,
    "the only entry deleted": 32,
    "bytes flipped": 816,
    "an output's key taken": 709,
    "three workers": 118_965,
    "delivered again, overwritten, uploads lost": 54_492,
    "late, overwritten, uploads lost": 90_865,
    "clean-up, overwritten": 6_484,
}
KEYS, RACE_OF_KEYS = "one ETag of a key", "comparison of keys in a lost race"
# For each guard: a start that needs it, the length of the shortest trace to a fault, and the other
# guards that keep the promise there, which are removed as well.
NEEDED = {
    "If-Match on read": (Start((A,), ("a2",)), 13, (KEYS, RACE_OF_KEYS)),
    "If-None-Match on commit": (Start((A, B), ("b1",)), 16, ()),
    "reload after 412": (Start((A, B), ("b1",)), 17, ()),
    "comparison with the log": (Start((A, B), ("b1",)), 17, ()),
    KEYS: (Start((A,), ("a1'",)), 13, (RACE_OF_KEYS,)),
    RACE_OF_KEYS: (Start((A, B), ("a1'",)), 16, ()),
    "commit before publish": (Start((A, B), ("b1",)), 6, ()),
    "checksum on publish": (Start((A,), ("bytes_flipped",)), 8, ()),
    "If-None-Match on publish": (Start((A,), ("key_taken",)), 8, ()),
    "no gap in the log": (Start((A,), ("c1",), world=GAP), 10, ()),
    "look for outputs beside an empty log": (Start((A,), ("b1",), world=EMPTIED), 9, ()),
    "checkpoint of readable outputs only": (Start((A, CLEAN_UP, QUERY), (RETENTION,)), 14, ()),
    "proof of the output": (Start((CLEAN_UP,), (), world=OUTPUT_GONE), 3, ()),
    "ETag on delete": (Start((A, CLEAN_UP), (RETENTION, "a2")), 14, ()),
    "retention": (Start((A, CLEAN_UP, QUERY), (RETENTION,)), 14, ()),
    "retention from the checkpoint": (Start((A, CLEAN_UP, QUERY), (RETENTION,)), 13, ()),
}


def explored(start: Start, *without: str, all_may_die: bool = True) -> Explored:
    model = commit_protocol(
        loses_answers=start.loses_answers, all_may_die=all_may_die, without=frozenset(without)
    )
    first = State(start.world, start.actors, start.events)
    return explore(first, model.steps, model.fault_of)


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("name", [*STARTS, *(LARGE if IN_PROOF else ())])
def test_no_state_of_the_protocol_is_wrong(name, proof_directory):
    start = (STARTS | LARGE)[name]
    found = explored(start)
    assert not found.fault, found.table
    assert found.states == STATES[name], "the model has changed: is it still what the code does?"
    keep_figures(proof_directory, name, found.states)


@pytest.mark.parametrize("guard", GUARDS)
def test_without_a_guard_there_is_a_trace_to_a_fault(guard, proof_directory):
    start, steps, others = NEEDED[guard]
    found = explored(start, guard, *others, all_may_die=False)
    print(f"\nWithout {guard}: {GUARDS[guard]}.\n\n{found.table}")  # noqa: T201 - pytest -s shows the counterexample
    assert found.fault
    assert len(found.trace) == steps
    keep_figures(proof_directory, f"without {guard}", 0)


@pytest.mark.parametrize("guard", GUARDS)
def test_with_that_guard_there_is_none(guard):
    start, _, others = NEEDED[guard]
    found = explored(start, *others, all_may_die=False)
    assert not found.fault, found.table
