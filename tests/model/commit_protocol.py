"""A model of the commit protocol of one partition, small enough to visit every reachable state.

Modelled with one S3 request per step: workers (load the log, settle what others committed, plan,
read, store, commit, publish, rebuild what was lost, and checkpoint the log), clean-ups, and a query
that reads a record from an output, or from its source if there is no output yet. Their steps may
come in any order. A worker that takes no further step has crashed or sleeps. In each state all may
be dead; then a last worker and clean-up, which run undisturbed, must restore a good state
(``_after_all_died``).

A start lists the events that may happen: sources arrive late, are overwritten, or are delivered
again with another ETag; a lifecycle rule aborts uploads; another writer's object takes the key of
an output; bytes are flipped in an upload; requests arrive after their sender gave up; retention
passes. In some, the log, one of its entries or an output was deleted before. Answers may be lost
any number of times: the request took effect, and the client sends it again. (A lost request
without effect changes nothing, so it is not a step.)

Not modelled: the content of sources; a source put again with the same ETag; LISTs of several pages;
records of clean-up; the identity and scheme of a state; partitions at rest; tables; wrong clocks.
These are one step each, because no other process can see or change what is in between: LIST of a
log with the GETs of its checkpoint and entries, creating an upload with its parts.

Removing a guard (``without``) must lead to a fault: tests/model/test_commit_protocol.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.clean_up import CLEAN_UP, Cleaner
from tests.model.partition_worker import WORKER, Worker
from tests.model.processes import NOTHING, Processes, Rules, State
from tests.model.s3_world import (
    EVENTS,
    HOLE,
    S3,
    WRITES,
    World,
    arrives,
    committed_in,
    keys_of,
    record_of,
)

#: Every guard that can be removed, and what happens without it.
GUARDS = {
    "If-Match on read": "a GET returns whatever stands at the key",
    "If-None-Match on commit": "an entry is written over what has its number",
    "reload after 412": "the next number is tried without looking at what has this one",
    "comparison with the log": "an entry is written although others name its sources",
    "one ETag of a key": "what was put over a committed source is compacted, too",
    "comparison of keys in a lost race": "only sources are compared there, with their ETags",
    "commit before publish": "outputs are published as soon as they are stored",
    "checksum on publish": "S3 completes an upload whatever its bytes are",
    "If-None-Match on publish": "an output is written over what stands at its key",
    "no gap in the log": "a log without one of its entries is believed",
    "look for outputs beside an empty log": "a log without entries is believed",
    "checkpoint of readable outputs only": "a checkpoint is written before its outputs can be read",
    "proof of the output": "clean-up does not look at the output",
    "ETag on delete": "clean-up deletes whatever stands at the key",
    "retention": "clean-up does not wait",
    "retention from the checkpoint": "retention counts from the commit, whoever publishes when",
}


# Events, and the checks of a state.


def _happens(state: State, event: str) -> Iterator[tuple[str, State]]:
    if event == "retention_passes":
        # Queries take less time than the retention; workers may sleep for longer.
        actors = [
            one._replace(at="done") if one.at == "read_source" else one for one in state.actors
        ]
        aged, aged_checkpoint = len(state.world.log), state.world.checkpoint
        world = state.world._replace(aged=aged, aged_checkpoint=aged_checkpoint)
        yield "the retention passes", state.used(event, world=world, actors=tuple(actors))
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
    committed = committed_in(tuple(one or HOLE for one in world.log))
    overwritten = (one for one in world.sources if one[0] in keys_of(committed - {one}))
    left = "+".join(sorted(world.sources.difference(overwritten)))
    return f"{left} is still a source in the end" if left and not world.spoiled else ""


def commit_protocol(
    *, loses_answers: bool = False, all_may_die: bool = True, without: frozenset[str] = NOTHING
) -> Processes:
    """Return the model, without the given guards."""
    functions = (*WORKER, *CLEAN_UP)
    last = Worker("the last worker"), Cleaner("the last clean-up", waits=False)
    rules = Rules(S3, functions, WRITES, _happens, _fault_in, last, _made_good)
    return Processes(rules, loses_answers=loses_answers, all_may_die=all_may_die, without=without)
