"""A worker of one partition, request by request, with the steps of compactor.runs and log.

load the log -> write missing witnesses -> compare the log with the outputs -> publish or rebuild
what others committed -> plan -> read -> store -> commit -> witness -> publish -> plan, until
nothing is left
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.model.processes import NOTHING
from tests.model.s3_world import (
    DONE,
    HOLE,
    S3,
    TAKEN,
    WRONG,
    Entry,
    committed_in,
    contents_in,
    record_of,
    replaced_in,
    valid_in,
)


class Worker(NamedTuple):
    """A worker between two requests.

    Attributes:
        at: its next request, as the name of a function below.
        log: the entries that it knows.
        unpublished: numbers of entries whose output it has not seen.
        unwitnessed: numbers of others' entries whose witness it has neither written nor compared.
        whole: it has compared the log with the outputs before storing its first output.
        settled: the number of the last entry when it last compared them before publishing.
        most: the number of sources that it has time to read for one output.
        drafts: the number of drafts that it has made.
        group, read, key, replaces: the sources it compacts, the records read so far, the key of the
            output, and the number of the entry that is replaced (0 for none).
        draft: the entry that it wants to write.
        number: the number of the entry that it publishes.
        seen: outputs that it found but its log does not name.
        held, again: records that entries had when it planned, and the sources of its group that
            have one of them.
        foreign: keys from which others compacted something since it planned.
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
    held: frozenset[str] = NOTHING
    again: frozenset[str] = NOTHING
    foreign: frozenset[str] = NOTHING

    def to(self, at: str, **changed: Any) -> Worker:
        return self._replace(at=at, **changed)

    def stopped(self) -> Worker:
        """Return the worker after it ended with IntegrityError."""
        return Worker(self.name, "stopped")

    def free(self) -> Worker:
        """Return the worker without its group, keeping what it knows of the log."""
        return Worker(*self[:9])


def load(w: Worker, s3: S3) -> Worker:
    return onward(learn(w, s3, from_number=0), s3)


def learn(w: Worker, s3: S3, from_number: int) -> Worker:
    """Load new entries; stop if a number up to the last entry or witness has no entry."""
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
        log=known,
        unpublished=(w.unpublished | outputs) - void,
        unwitnessed=unwitnessed,
        foreign=w.foreign | {one[0] for n in new for one in known[n - 1].sources},
    )


def onward(w: Worker, s3: S3) -> Worker:
    """Choose the next request."""
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
    """Reload the log: others may have committed and published the outputs meanwhile."""
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
    # With a pending draft, the lost upload is settled later: the log comes first.
    return onward(w.free(), s3) if w.draft is not None else w.to("withdraw")


def look_why(w: Worker, s3: S3) -> Worker:
    """A different output is only right if the commit was replaced meanwhile; else stop."""
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
    held = contents_in(w.log) if "comparison with what was compacted" not in s3.without else NOTHING
    at = "read" if w.whole else "compare_outputs"
    return w.to(at, group=group, key="".join(group), held=held, foreign=NOTHING)


def read(w: Worker, s3: S3) -> Worker:
    version = w.group[len(w.read) + len(w.again)]
    record = s3.get_source(version)
    if not record:
        if not w.replaces:
            return onward(w.free(), s3)
        void = Entry(f"{w.name} voids {w.replaces}", replaces=w.replaces)
        return append(w.free(), void, s3)
    if record in w.held:
        w = w._replace(again=w.again | {version})
    else:
        w = w._replace(read=w.read | {record})
    if len(w.read) + len(w.again) < len(w.group) and len(w.read) < w.most:
        return w
    w = w._replace(drafts=w.drafts + 1)
    return w.to("store" if w.read else "find_origins")


def store(w: Worker, s3: S3) -> Worker:
    s3.store_upload(f"{w.name}{w.drafts}", w.key, w.read)
    return w.to("find_origins") if w.again else drafted(w, s3)


def find_origins(w: Worker, s3: S3) -> Worker:
    """Content that was delivered again must be in a readable output; else plan again."""
    s3.list_log()
    published = (one for n, one in valid_in(w.log).items() if n not in w.unpublished)
    known = frozenset().union(*(one.records for one in published))
    if known >= set(map(record_of, w.again)):
        return drafted(w, s3)
    return w.to("drop", draft=Entry(f"{w.name}{w.drafts}"))


def drafted(w: Worker, s3: S3) -> Worker:
    sources = frozenset(w.group[: len(w.read) + len(w.again)]) - w.again
    key = w.key if w.read else ""
    draft = Entry(f"{w.name}{w.drafts}", key, sources, w.read, w.replaces, w.again)
    if "commit before publish" in s3.without:
        return w.to("publish_first", draft=draft)
    return append(w, draft, s3)


def publish_first(w: Worker, s3: S3) -> Worker:
    assert w.draft is not None
    s3.complete_upload(w.draft)
    return append(w, w.draft, s3)


def append(w: Worker, draft: Entry, s3: S3) -> Worker:
    """Commit the draft, unless others committed its sources or settled what it replaces."""
    wanted, conflict = draft.sources | draft.again, False
    if "comparison with what others compacted" not in s3.without and not draft.replaces:
        conflict = bool(w.foreign & {one[0] for one in draft.sources})
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
    """Continue after the draft became an entry of the log."""
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


WORKER = (
    *(load, leave_witnesses, compare_outputs, compare_again, note, publish, head, look_why),
    *(withdraw, head_again, plan, read, store, find_origins, publish_first, commit, reload),
    *(leave_witness, drop),
)
