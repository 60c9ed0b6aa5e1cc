"""A model of the commit protocol of one partition, small enough to visit every reachable state.

Modelled with one S3 request per step: workers (load the log, write witnesses, settle what others
committed, plan, read, store, commit, publish, and rebuild what was lost), clean-ups, and a query
that reads a record from an output, or from its source if there is no output yet. Their steps may
come in any order. A worker that takes no further step has crashed or sleeps. In each state all may
be dead; then a last worker and clean-up, which run undisturbed, must restore a good state
(``_after_all_died``).

A start lists the events that may happen: sources arrive late, are overwritten, or are delivered
again with another ETag; a lifecycle rule aborts uploads; objects of the log are deleted; another
writer's object takes the key of an output; bytes are flipped in an upload; requests arrive after
their sender gave up; retention passes. Answers may be lost any number of times: the request took
effect, and the client sends it again. (A lost request without effect changes nothing, so it is not
a step.)

Not modelled: the content of sources; a source put again with the same ETag; LISTs of several pages;
checkpoints; records of clean-up; the identity and scheme of a state; partitions at rest; tables;
wrong clocks. These are one step each, because no other process can see or change what is in
between: LIST of a log with the GETs of its entries, creating an upload with its parts, a refused
create of a witness with the GET that shows whose it is.

Removing a guard (``without``) must lead to a fault: tests/model/test_commit_protocol.py.
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

#: Every guard that can be removed, and what happens without it.
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


# Events, and the checks of a state.


def _happens(state: State, event: str, *, without: frozenset[str]) -> Iterator[tuple[str, State]]:
    if event == "retention_passes":
        # Whatever takes less time than the retention has ended.
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
    """Return which records can be read twice, or are lost although no producer withdrew them."""
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
    """Return the model, without the given guards."""
    functions = (*WORKER, *CLEAN_UP)
    last = Worker("the last worker"), Cleaner("the last clean-up", waits=False)
    rules = Rules(
        S3, functions, WRITES, partial(_happens, without=without), _fault_in, last, _made_good
    )
    return Processes(rules, loses_answers=loses_answers, all_may_die=all_may_die, without=without)
