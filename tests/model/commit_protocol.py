"""The commit protocol of one partition, small enough to visit every state that it can reach.

Modelled, one S3 request a step: workers (load the log, leave witnesses, settle what others
committed, plan, read, store, commit, publish, and build again what was lost), clean-ups, and a
query that reads a record from an output, or from its source where there is none yet. They take
their steps in any order. A worker that takes no further step is one that crashed, or sleeps: in
each state all may be dead, and a last worker and clean-up, which nothing disturbs, must then make
everything good (``after_all_died``).

What happens to them is an event that a start allows so many times: sources arrive late or are
overwritten, a lifecycle rule aborts uploads, objects of the log are deleted, an object of somebody
else lies where an output goes, bytes are flipped in an upload, requests arrive after their sender
gave up, retention passes. Answers get lost as often as one likes: the request took effect, and the
client sends it again. (One without effect changes nothing, so it is no step.)

Not modelled: what is in sources, and content delivered again under another ETag; several pages of
a LIST; checkpoints; records of clean-up; the identity and scheme of a state; a partition at rest;
tables; clocks that are wrong. Taken together in one step, because nobody else can see or change
what lies in between: LIST of a log with the GETs of its entries, creating an upload with its parts,
a refused create of a witness with the GET that tells whose it is.

A guard that is taken out (``without``) must lead to a fault: tests/model/test_commit_protocol.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from tests.model.clean_up import CLEAN_UP, Cleaner
from tests.model.processes import NOTHING, Processes, Rules, State
from tests.model.s3_world import (
    DONE,
    EVENTS,
    HOLE,
    S3,
    TAKEN,
    WRITES,
    WRONG,
    Entry,
    World,
    arrives,
    committed_in,
    replaced_in,
)

#: Every guard that can be taken out, and what is done without it.
GUARDS = {
    "If-Match on read": "a GET returns whatever stands at the key",
    "If-None-Match on commit": "an entry is written over what has its number",
    "reload after 412": "the next number is tried without looking at what has this one",
    "comparison with the log": "an entry is written although others name its sources",
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


class Worker(NamedTuple):
    """A worker between two requests.

    Attributes:
        at: its next request, by the name of a function below.
        log: as far as it knows it.
        unpublished: numbers of entries whose output it has not seen.
        unwitnessed: of others' entries whose witness it has neither left nor compared.
        whole: it has compared the log with the outputs, before its first one.
        settled: the number of the last entry when it compared them before publishing.
        most: sources that it has time to read for one output.
        drafts: how many it has made.
        group, read, key, replaces: what it compacts, has read of that, and to which output; in
            place of which entry.
        draft: the entry that it wants to write.
        number: of the entry that it publishes.
        seen: outputs that it found, and its log does not name.
    """

    name: str
    at: str = "load"
    log: tuple[Entry, ...] = ()
    unpublished: frozenset[int] = NOTHING
    unwitnessed: frozenset[int] = NOTHING
    whole: bool = False
    settled: int = 0
    most: int = 9
    drafts: int = 0
    group: tuple[str, ...] = ()
    read: frozenset[str] = NOTHING
    key: str = ""
    replaces: int = 0
    draft: Entry | None = None
    number: int = 0
    seen: frozenset[str] = NOTHING

    def to(self, at: str, **changed: Any) -> Worker:
        return self._replace(at=at, **changed)

    def stopped(self) -> Worker:
        """Ended with IntegrityError."""
        return Worker(self.name, "stopped")

    def free(self) -> Worker:
        """Done with its group."""
        return self._replace(
            group=(), read=NOTHING, key="", replaces=0, draft=None, number=0, seen=NOTHING
        )


def load(w: Worker, s3: S3) -> Worker:
    return onward(learn(w, s3, from_number=0), s3)


def learn(w: Worker, s3: S3, from_number: int) -> Worker:
    """Take the entries that are new; a number that anything tells of must have its entry."""
    log, witnesses = s3.list_log()
    last = max((n for n, one in enumerate(log, 1) if one or witnesses[n - 1]), default=0)
    if None in log[from_number:last] and "no gap in the log" not in s3.without:
        return w.stopped()
    new = range(len(w.log) + 1, last + 1)
    known = (*w.log, *(log[n - 1] or HOLE for n in new))
    void = replaced_in(known)
    outputs = {n for n in new if known[n - 1].key}
    unwitnessed = w.unwitnessed.union(n for n in new if log[n - 1]) - void
    if "witness" in s3.without:
        unwitnessed = NOTHING
    return w._replace(
        log=known, unpublished=(w.unpublished | outputs) - void, unwitnessed=unwitnessed
    )


def onward(w: Worker, s3: S3) -> Worker:
    """What a worker does next, between two requests."""
    if w.at == "stopped":
        return w
    lost_race = w.draft is not None and "witnesses in a lost race" in s3.without
    if w.unwitnessed and not lost_race:
        return w.to("leave_witnesses")
    if w.draft is not None:
        return append(w, w.draft, s3)
    if w.unpublished and w.settled < len(w.log):
        return w.to("compare_outputs")
    if w.unpublished:
        return w.to("note", number=min(w.unpublished))
    return w.to("plan")


def leave_witnesses(w: Worker, s3: S3) -> Worker:
    number = min(w.unwitnessed)
    if s3.create_witness(number, w.log[number - 1].commit) != w.log[number - 1].commit:
        return w.stopped()
    return onward(w._replace(unwitnessed=w.unwitnessed - {number}), s3)


def compare_outputs(w: Worker, s3: S3) -> Worker:
    unnamed = s3.list_outputs() - {entry.key for entry in w.log}
    if unnamed and "comparison with the outputs" not in s3.without:
        return w.to("compare_again", seen=unnamed)
    return compared(w, s3)


def compare_again(w: Worker, s3: S3) -> Worker:
    """Others may have committed and published them meanwhile."""
    w = learn(w, s3, len(w.log))
    if w.at == "stopped" or w.seen - {entry.key for entry in w.log}:
        return w.stopped()
    return compared(w._replace(seen=NOTHING), s3)


def compared(w: Worker, s3: S3) -> Worker:
    w = w._replace(whole=True)
    return w.to("read") if w.group else onward(w._replace(settled=len(w.log)), s3)


def note(w: Worker, s3: S3) -> Worker:
    if "note of a later publication" not in s3.without:
        s3.note_publication(w.number)
    return w.to("publish")


def publish(w: Worker, s3: S3) -> Worker:
    answer = s3.complete_upload(w.log[w.number - 1])
    if answer == DONE:
        return published(w, s3)
    return w.to("look_why" if answer == WRONG else "head")


def published(w: Worker, s3: S3) -> Worker:
    return onward(w.free()._replace(unpublished=w.unpublished - {w.number}), s3)


def head(w: Worker, s3: S3) -> Worker:
    found = s3.head_output(w.log[w.number - 1].key)
    if found is not None:
        is_same = found == w.log[w.number - 1].records
        return published(w, s3) if is_same else w.to("look_why")
    # Of its own commit an upload that is gone is another one's to settle: the log comes first.
    return onward(w.free(), s3) if w.draft is not None else w.to("withdraw")


def look_why(w: Worker, s3: S3) -> Worker:
    """Another output is right where the commit was replaced meanwhile."""
    w = learn(w, s3, len(w.log))
    if w.at == "stopped" or w.number not in replaced_in(w.log):
        return w.stopped()
    return onward(w.free(), s3)


def withdraw(w: Worker, s3: S3) -> Worker:
    s3.abort_upload(w.log[w.number - 1].commit)
    return w.to("head_again")


def head_again(w: Worker, s3: S3) -> Worker:
    entry = w.log[w.number - 1]
    found = s3.head_output(entry.key)
    if found is not None:
        return published(w, s3) if found == entry.records else w.to("look_why")
    group = tuple(sorted(entry.sources))
    return w.free().to("read", group=group, key=entry.key, replaces=w.number)


def plan(w: Worker, s3: S3) -> Worker:
    group = tuple(sorted(s3.list_sources() - committed_in(w.log)))
    if not group:
        return Worker(w.name, "done")
    at = "read" if w.whole else "compare_outputs"
    return w.to(at, group=group, key="".join(group))


def read(w: Worker, s3: S3) -> Worker:
    record = s3.get_source(w.group[len(w.read)])
    if not record:
        if not w.replaces:
            return onward(w.free(), s3)
        void = Entry(f"{w.name} voids {w.replaces}", replaces=w.replaces)
        return append(w.free(), void, s3)
    w = w._replace(read=w.read | {record})
    return w if len(w.read) < min(len(w.group), w.most) else w.to("store")


def store(w: Worker, s3: S3) -> Worker:
    commit = f"{w.name}{w.drafts + 1}"
    s3.store_upload(commit, w.key, w.read)
    sources = frozenset(w.group[: len(w.read)])
    draft = Entry(commit, w.key, sources, w.read, w.replaces)
    w = w._replace(drafts=w.drafts + 1)
    if "commit before publish" in s3.without:
        return w.to("publish_first", draft=draft)
    return append(w, draft, s3)


def publish_first(w: Worker, s3: S3) -> Worker:
    assert w.draft is not None
    s3.complete_upload(w.draft)
    return append(w, w.draft, s3)


def append(w: Worker, draft: Entry, s3: S3) -> Worker:
    """Write the draft as the next entry, unless others have its sources, or have replaced it."""
    wanted, conflict = draft.sources, False
    if draft.replaces:
        conflict = draft.replaces not in w.unpublished
        wanted -= w.log[draft.replaces - 1].sources
    conflict = conflict or bool(wanted & committed_in(w.log))
    if conflict and "comparison with the log" not in s3.without:
        return w.to("drop", draft=draft)
    return w.to("commit", draft=draft)


def commit(w: Worker, s3: S3) -> Worker:
    assert w.draft is not None
    number = len(w.log) + 1
    if s3.create_entry(number, w.draft) == TAKEN:
        if "reload after 412" in s3.without:
            return w.to("commit", log=(*w.log, HOLE))
        return w.to("reload")
    return committed(w._replace(log=(*w.log, w.draft)), s3)


def reload(w: Worker, s3: S3) -> Worker:
    number = len(w.log) + 1
    w = learn(w, s3, len(w.log))
    if w.at != "stopped" and w.draft in w.log[number - 1 : number]:
        return committed(w, s3)
    return onward(w, s3)


def committed(w: Worker, s3: S3) -> Worker:
    """Its draft is an entry."""
    assert w.draft is not None
    number = w.log.index(w.draft) + 1
    unpublished = w.unpublished - {w.draft.replaces} | ({number} if w.draft.key else set())
    unwitnessed = w.unwitnessed - {number, w.draft.replaces}
    w = w._replace(number=number, unpublished=unpublished, unwitnessed=unwitnessed)
    return w.to("leave_witness") if "witness" not in s3.without else witnessed(w, s3)


def leave_witness(w: Worker, s3: S3) -> Worker:
    if s3.create_witness(w.number, w.log[w.number - 1].commit) != w.log[w.number - 1].commit:
        return w.stopped()
    return witnessed(w, s3)


def witnessed(w: Worker, s3: S3) -> Worker:
    return w.to("publish") if w.log[w.number - 1].key else onward(w.free(), s3)


def drop(w: Worker, s3: S3) -> Worker:
    assert w.draft is not None
    s3.abort_upload(w.draft.commit)
    return onward(w.free(), s3)


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
    lost = world.written - world.sources - world.taken_back - set(readable)
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
    functions = (
        *(load, leave_witnesses, compare_outputs, compare_again, note, publish, head, look_why),
        *(withdraw, head_again, plan, read, store, publish_first, commit, reload, leave_witness),
        *(drop, *CLEAN_UP),
    )
    last = Worker("the last worker"), Cleaner("the last clean-up", waits=False)
    rules = Rules(
        S3, functions, WRITES, partial(_happens, without=without), _fault_in, last, _made_good
    )
    return Processes(rules, loses_answers=loses_answers, all_may_die=all_may_die, without=without)
