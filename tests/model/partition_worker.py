"""A worker of one partition, request by request, with the steps of compactor.partition and log.

load the log -> publish or rebuild what others committed -> plan -> if the log is empty, look for
outputs -> read -> store -> commit -> publish -> plan, until nothing is left -> checkpoint
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
    keys_of,
    replaced_in,
)


class Worker(NamedTuple):
    """A worker between two requests.

    Attributes:
        at: its next request, as the name of a function below.
        log: the entries that it knows.
        unpublished: numbers of entries whose output it has not seen.
        checkpoint: the number that the newest checkpoint it knows has.
        whole: it has looked for outputs beside its empty log.
        most: the number of sources that it has time to read for one output.
        drafts: the number of drafts that it has made.
        group, read, key, replaces: the sources it compacts, the records read so far, the key of the
            output, and the number of the entry that is replaced (0 for none).
        draft: the entry that it wants to write.
        number: the number of the entry that it publishes.
    """

    name: str
    at: str = "load"
    log: tuple[Entry, ...] = ()
    unpublished: frozenset[int] = NOTHING
    checkpoint: int = 0
    whole: bool = False
    most: int = 9
    drafts: int = 0
    group: tuple[str, ...] = ()
    read: frozenset[str] = NOTHING
    key: str = ""
    replaces: int = 0
    draft: Entry | None = None
    number: int = 0

    def to(self, at: str, **changed: Any) -> Worker:
        return self._replace(at=at, **changed)

    def stopped(self) -> Worker:
        """Return the worker after it ended with IntegrityError."""
        return Worker(self.name, "stopped")

    def free(self) -> Worker:
        """Return the worker without its group, keeping what it knows of the log."""
        return Worker(*self[:8])


def load(w: Worker, s3: S3) -> Worker:
    return onward(learn(w, s3, from_number=0), s3)


def learn(w: Worker, s3: S3, from_number: int) -> Worker:
    """Load new entries; stop if a number up to the last entry or checkpoint has no entry."""
    log, checkpoint = s3.list_log()
    last = max(checkpoint, len(log))
    log += (None,) * (last - len(log))
    if None in log[from_number:] and "no gap in the log" not in s3.without:
        return w.stopped()
    new = range(len(w.log) + 1, last + 1)
    known = (*w.log, *(log[n - 1] or HOLE for n in new))
    void = replaced_in(known)
    outputs = {n for n in new if known[n - 1].key}
    return w._replace(
        log=known,
        unpublished=(w.unpublished | outputs) - void,
        checkpoint=checkpoint,
    )


def onward(w: Worker, s3: S3) -> Worker:
    """Choose the next request."""
    if w.at == "stopped":
        return w
    if w.draft is not None:
        return append(w, w.draft, s3)
    if w.unpublished:
        return w.to("publish", number=min(w.unpublished))
    return w.to("plan")


def look_for_outputs(w: Worker, s3: S3) -> Worker:
    if s3.list_outputs() and "look for outputs beside an empty log" not in s3.without:
        return w.to("look_again")
    return w.to("read", whole=True)


def look_again(w: Worker, s3: S3) -> Worker:
    """Reload the log: others may have committed and published the outputs meanwhile."""
    w = learn(w, s3, len(w.log))
    return w.to("read", whole=True) if w.log else w.stopped()


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
    """Choose the sources that no entry names; one put over a committed source is left alone."""
    committed = committed_in(w.log)
    left_alone = NOTHING if "one ETag of a key" in s3.without else keys_of(committed)
    sources = s3.list_sources() - committed
    group = tuple(sorted(one for one in sources if one[0] not in left_alone))
    if not group:
        return w.to("checkpoint_log") if w.checkpoint < len(w.log) else Worker(w.name, "done")
    at = "read" if w.whole or w.log else "look_for_outputs"
    return w.to(at, group=group, key="".join(group))


def checkpoint_log(w: Worker, s3: S3) -> Worker:
    s3.create_checkpoint(len(w.log))
    return w.to("publish", checkpoint=len(w.log)) if w.number else Worker(w.name, "done")


def read(w: Worker, s3: S3) -> Worker:
    version = w.group[len(w.read)]
    record = s3.get_source(version)
    if not record:
        if not w.replaces:
            return onward(w.free(), s3)
        void = Entry(f"{w.name} voids {w.replaces}", replaces=w.replaces)
        return append(w.free(), void, s3)
    w = w._replace(read=w.read | {record})
    if len(w.read) < min(len(w.group), w.most):
        return w
    return w.to("store", drafts=w.drafts + 1)


def store(w: Worker, s3: S3) -> Worker:
    s3.store_upload(f"{w.name}{w.drafts}", w.key, w.read)
    sources = frozenset(w.group[: len(w.read)])
    draft = Entry(f"{w.name}{w.drafts}", w.key, sources, w.read, w.replaces)
    if "commit before publish" in s3.without:
        return w.to("publish_first", draft=draft)
    return append(w, draft, s3)


def publish_first(w: Worker, s3: S3) -> Worker:
    assert w.draft is not None
    s3.complete_upload(w.draft)
    return append(w, w.draft, s3)


def append(w: Worker, draft: Entry, s3: S3) -> Worker:
    """Commit the draft, unless others committed its sources or settled what it replaces."""
    wanted, committed = draft.sources, committed_in(w.log)
    conflict = False
    if draft.replaces:
        conflict = draft.replaces not in w.unpublished
        wanted -= w.log[draft.replaces - 1].sources
    conflict = conflict or bool(wanted & committed)
    if "comparison of keys in a lost race" not in s3.without:
        conflict = conflict or bool(keys_of(wanted) & keys_of(committed))
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
    w = w._replace(number=number, unpublished=unpublished)
    if not w.log[number - 1].key:
        return onward(w.free(), s3)
    early = "checkpoint of readable outputs only" in s3.without
    return w.to("checkpoint_log" if early else "publish")


def drop(w: Worker, s3: S3) -> Worker:
    assert w.draft is not None
    s3.abort_upload(w.draft.commit)
    return onward(w.free(), s3)


WORKER = (
    *(load, look_for_outputs, look_again, publish, head, look_why, withdraw, head_again, plan),
    *(checkpoint_log, read, store, publish_first, commit, reload, drop),
)
