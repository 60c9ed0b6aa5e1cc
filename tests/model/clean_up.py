"""Clean-up of one partition, and a query that reads a source until an output has its record."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.model.s3_world import HOLE, S3, Entry, replaced_in


class Cleaner(NamedTuple):
    """A clean-up between two requests.

    Attributes:
        waits: it waits for the retention.
        log: the log as it was listed, without gaps.
        due: numbers of entries that it has not checked yet.
        number, proven: the number of the entry whose sources it is about to delete, and those.
    """

    name: str
    at: str = "survey"
    waits: bool = True
    log: tuple[Entry, ...] = ()
    due: tuple[int, ...] = ()
    number: int = 0
    proven: tuple[str, ...] = ()

    def to(self, at: str, **changed: Any) -> Cleaner:
        return self._replace(at=at, **changed)


def survey(c: Cleaner, s3: S3) -> Cleaner:
    log, checkpoint = s3.list_log()
    last = max(checkpoint, len(log))
    log += (None,) * (last - len(log))
    if None in log and "no gap in the log" not in s3.without:
        return Cleaner(c.name, "stopped")
    known = tuple(one or HOLE for one in log)
    due = (n for n in range(1, _past(c, s3) + 1) if known[n - 1].sources)
    return next_entry(c._replace(log=known, due=tuple(sorted(set(due) - replaced_in(known)))))


def _past(c: Cleaner, s3: S3) -> int:
    """Return the number of the last entry whose sources need not be kept any longer."""
    if not c.waits or "retention" in s3.without:
        return s3.world.checkpoint
    if "retention from the checkpoint" in s3.without:
        return s3.world.aged
    return s3.world.aged_checkpoint


def next_entry(c: Cleaner) -> Cleaner:
    return c.to("prove", number=0) if c.due else Cleaner(c.name, "done")


def prove(c: Cleaner, s3: S3) -> Cleaner:
    """Check the entry's output by HEAD."""
    number = c.due[0]
    entry, c = c.log[number - 1], c._replace(due=c.due[1:])
    is_proven = not entry.key or s3.head_output(entry.key) == entry.records
    if not is_proven and "proof of the output" not in s3.without:
        return next_entry(c)
    return c.to("delete", number=number, proven=tuple(sorted(entry.sources)))


def delete(c: Cleaner, s3: S3) -> Cleaner:
    s3.delete_source(c.proven[0])
    c = c._replace(proven=c.proven[1:])
    return c if c.proven else next_entry(c)


class Query(NamedTuple):
    """A query of record a1: from an output, or from its source if no output has it."""

    name: str
    at: str = "look_at_outputs"


def look_at_outputs(q: Query, s3: S3) -> Query:
    return q._replace(at="done" if "a1" in s3.read_outputs() else "read_source")


def read_source(q: Query, s3: S3) -> Query:
    if not s3.get_source("a1") and "a1" not in s3.world.taken_back:
        s3.now(fault="a query finds a source deleted that no output had when it began")
    return q._replace(at="done")


CLEAN_UP = (survey, prove, delete, look_at_outputs, read_source)
