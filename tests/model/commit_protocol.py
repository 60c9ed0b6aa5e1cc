"""The commit protocol of one partition, small enough to visit every state that it can reach.

Modelled, one S3 request a step: workers (load the log, leave witnesses, settle what others
committed, plan, read, store, commit, publish, and build again what was lost), clean-ups, and a
query that reads a record from an output, or from its source where there is none yet. They take
their steps in any order. A worker that takes no further step is one that crashed, or sleeps: in
each state all may be dead, and a last worker and clean-up, which nothing disturbs, must then make
everything good (``after_all_died``).

What happens to them is an event that a start allows so many times: sources arrive late, are
overwritten, or are delivered again with another ETag; a lifecycle rule aborts uploads; objects of
the log are deleted; an object of somebody else lies where an output goes; bytes are flipped in an
upload; requests arrive after their sender gave up; retention passes. Answers get lost as often as
one likes: the request took effect, and the client sends it again. (One without effect changes
nothing, so it is no step.)

Not modelled: what is in sources; the same ETag once more; several pages of a LIST; checkpoints;
records of clean-up; the identity and scheme of a state; a partition at rest; tables; clocks that
are wrong. Taken together in one step, because nobody else can see or change what lies in between:
LIST of a log with the GETs of its entries, creating an upload with its parts, a refused create of a
witness with the GET that tells whose it is.

A guard that is taken out (``without``) must lead to a fault: tests/model/test_commit_protocol.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tests.model.clean_up import CLEAN_UP, Cleaner
from tests.model.partition_worker import WORKER, Worker
from tests.model.processes import NOTHING, Processes, Rules, State
from tests.model.s3_world import (
    EVENTS,
    S3,
    WRITES,
    World,
    arrives,
    record_of,
)

#: Every guard that can be taken out, and what is done without it.
GUARDS = {
    "If-Match on read": "a GET returns whatever stands at the key",
    "If-None-Match on commit": "an entry is written over what has its number",
    "reload after 412": "the next number is tried without looking at what has this one",
    "comparison with the log": "an entry is written although others name its sources",
    "comparison with what was compacted": "what came again is compacted again",
    "comparison with what others compacted": "only sources are compared in a lost race, not keys",
    "commit before publish": "outputs are published as soon as they are stored",
    "checksum on publish": "S3 completes an upload whatever its bytes are",
    "If-None-Match on publish": "an output is written over what stands at its key",
    "no gap in the log": "a log without one of its entries is believed",
    "witness": "nobody leaves or compares witnesses",
    "witnesses in a lost race": "entries found in a lost race are believed without their witness",
    "comparison with the outputs": "a log that does not name an output is believed",
    "proof of the output": "clean-up does not look at the output",
    "ETag on delete": "clean-up deletes whatever stands at the key",
    "retention": "clean-up does not wait",
    "note of a later publication": "retention counts from the commit, whoever publishes when",
    "look for a note since": "clean-up believes the notes that it listed at first",
    "calls shorter than the retention": "a worker sleeps that long before it publishes",
}


# What may happen, and what must not.


def _happens(state: State, event: str, *, without: frozenset[str]) -> Iterator[tuple[str, State]]:
    if event == "retention_passes":
        # Nothing of what takes less time than that is under way afterwards.
        ended = {"read_source"}
        if "calls shorter than the retention" not in without:
            ended |= {"leave_witness", "publish", "complete_upload"}
        actors = [one._replace(at="done") if one.at in ended else one for one in state.actors]
        under_way = frozenset(one for one in state.under_way if one.name not in ended)
        world = state.world._replace(aged=frozenset(range(1, len(state.world.log) + 1)))
        changed = {"world": world, "actors": tuple(actors), "under_way": under_way}
        yield "the retention passes", state.used(event, **changed)
        return
    ways = EVENTS[event](state.world) if event in EVENTS else arrives(state.world, event)
    for words, world in ways:
        yield words, state.used(event, world=world)


def _fault_in(world: World) -> str:
    """What readers find wrong; or what no source and no output has, and no producer took back."""
    readable = [one for _, records in world.outputs for one in records]
    twice = {one for one in readable if readable.count(one) > 1}
    lost = world.written - set(map(record_of, world.sources)) - world.taken_back - set(readable)
    if twice:
        return f"{'+'.join(sorted(twice))} can be read twice"
    if lost:
        return f"{'+'.join(sorted(lost))} is neither in a source nor in an output"
    return world.fault


def _made_good(world: World) -> str:
    left = "+".join(sorted(world.sources))
    return f"{left} is still a source in the end" if left and not world.spoiled else ""


def commit_protocol(
    *, loses_answers: bool = False, all_may_die: bool = True, without: frozenset[str] = NOTHING
) -> Processes:
    """The model, perhaps without some guards."""
    functions = (*WORKER, *CLEAN_UP)
    last = Worker("the last worker"), Cleaner("the last clean-up", waits=False)
    rules = Rules(
        S3, functions, WRITES, partial(_happens, without=without), _fault_in, last, _made_good
    )
    return Processes(rules, loses_answers=loses_answers, all_may_die=all_may_die, without=without)
