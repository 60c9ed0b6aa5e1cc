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
RETENTION, LIFECYCLE, DELETED = "retention_passes", "upload_aborted", "log_object_deleted"
BOTH = World(sources=frozenset({"a1", "b1"}), written=frozenset({"a1", "b1"}))


class Start(NamedTuple):
    """The processes of a search, and the events that may happen."""

    actors: tuple[Any, ...]
    events: tuple[str, ...]
    world: World = World()
    loses_answers: bool = False


def asleep(name: str, *group: str) -> Worker:
    """Return a worker that stored an output of these sources, and knows only the empty log."""
    sources, key = frozenset(group), "".join(group)
    draft = Entry(f"{name}1", key, sources, sources)
    return Worker(name, "commit", whole=True, drafts=1, group=group, read=sources, draft=draft)


def uploads_of(*workers: Worker) -> frozenset[tuple[str, str, frozenset[str]]]:
    drafts = [one.draft for one in workers if one.draft is not None]
    return frozenset((one.commit, one.key, one.records) for one in drafts)


# A and C both have a1, in different groups; B wrote the first entry, and died before its witness.
ASLEEP, DEAD = (asleep("A", "a1", "b1"), asleep("C", "a1", "c1")), asleep("B", "d1")
RACE = World(
    sources=frozenset({"a1", "b1", "c1", "d1"}),
    written=frozenset({"a1", "b1", "c1", "d1"}),
    uploads=uploads_of(*ASLEEP, DEAD),
    log=(DEAD.draft,),
    witnesses=("",),
    committed=frozenset({"B1"}),
)
# The whole log of a published output was deleted.
EMPTIED = World(outputs=frozenset({("a1", frozenset({"a1"}))}), spoiled=True)

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
    "an object of the log deleted": Start((A, B), ("b1", DELETED)),
    "an object of the log deleted, clean-up": Start((A, CLEAN_UP), (RETENTION, "b1", DELETED)),
    "an entry without witness deleted": Start(ASLEEP, (DELETED,), world=RACE),
    "bytes flipped": Start((A, B), ("bytes_flipped",), loses_answers=True),
    "an output's key taken": Start((A, B), ("key_taken",), loses_answers=True),
}
LARGE = {
    "three workers": Start((A, B, C), (LIFECYCLE,)),
    "delivered again, overwritten, uploads lost": Start((A, B), ("a1'", "a2", LIFECYCLE)),
    "late, overwritten, uploads lost": Start((A, B), ("b1", "a2", LIFECYCLE)),
    "overwritten, uploads lost, a log object deleted": Start((A, B), ("a2", LIFECYCLE, DELETED)),
    "a log object deleted, requests late": Start((A, B), ("b1", DELAYED, DELETED)),
    "clean-up, overwritten": Start((A, B, CLEAN_UP), (RETENTION, "a2")),
}
STATES = {
    "two workers, answers lost": 7_607,
    "late and overwritten sources": 26_249,
    "a source delivered again": 23_431,
    "delivered again, uploads lost": 17_213,
    "delivered again, clean-up": 2_012,
    "uploads lost, sources overwritten": 25_603,
    "time for one source of two": 9_110,
    "requests that arrive late": 20_383,
    "clean-up and query": 9_106,
    "two workers, clean-up, query": 9_608,
    "two clean-ups": 13_840,
    "deletes that arrive late": 3_206,
    "an object of the log deleted": 9_695,
    "an object of the log deleted, clean-up": 1_758,
    "an entry without witness deleted": 7_336,
    "bytes flipped": 1_404,
    "an output's key taken": 1_387,
    "three workers": 142_683,
    "delivered again, overwritten, uploads lost": 306_846,
    "late, overwritten, uploads lost": 314_627,
    "overwritten, uploads lost, a log object deleted": 162_165,
    "a log object deleted, requests late": 104_199,
    "clean-up, overwritten": 76_472,
}
CONTENTS = "comparison with what was compacted"
# For each guard: a start that needs it, the length of the shortest trace to a fault, and the other
# guards that keep the promise there, which are removed as well.
NEEDED = {
    "If-Match on read": (Start((A,), ("a2",)), 15, (CONTENTS,)),
    "If-None-Match on commit": (Start((A, B), ("b1",)), 16, ("witness",)),
    "reload after 412": (Start((A, B), ("b1",)), 19, ()),
    "comparison with the log": (Start((A, B), ("b1",)), 19, ()),
    CONTENTS: (Start((A, B), ("a1'",)), 15, ()),
    "comparison with what others compacted": (Start((A, B), ("a1'",)), 18, ()),
    "commit before publish": (Start((A, B), ("b1",)), 6, ()),
    "checksum on publish": (Start((A,), ("bytes_flipped",)), 9, ()),
    "If-None-Match on publish": (Start((A,), ("key_taken",)), 9, ()),
    "no gap in the log": (Start((A, B), ("b1", DELETED)), 19, ()),
    "witness": (Start((A, B), ("b1", DELETED)), 17, ()),
    "witnesses in a lost race": (Start(ASLEEP, (DELETED,), world=RACE), 9, ()),
    "comparison with the outputs": (Start((A,), ("b1",), world=EMPTIED), 10, ()),
    "proof of the output": (Start((A, CLEAN_UP), (RETENTION, LIFECYCLE)), 12, ()),
    "ETag on delete": (Start((A, CLEAN_UP), (RETENTION, "a2")), 15, ()),
    "retention": (Start((A, CLEAN_UP, QUERY), (RETENTION,)), 14, ()),
    "note of a later publication": (Start((A, B, CLEAN_UP, QUERY), (RETENTION,)), 19, ()),
    "look for a note since": (Start((A, B, CLEAN_UP, QUERY), (RETENTION,)), 18, ()),
    "calls shorter than the retention": (Start((A, CLEAN_UP, QUERY), (RETENTION,)), 16, ()),
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


def test_the_known_limit_takes_two_objects_of_the_log():
    """DESIGN.md documents this limit: both are deleted while a worker is about to publish."""
    found = explored(Start((A, B), ("b1", DELETED, DELETED)), all_may_die=False)
    assert found.fault == "a1 can be read twice"
    assert sum("somebody deletes" in step for step in found.trace) == 2
