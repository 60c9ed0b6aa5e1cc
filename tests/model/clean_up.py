"""Clean-up of one partition, and a query that reads a source until an output has its record."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.model.processes import NOTHING
from tests.model.s3_world import HOLE, S3, Entry, record_of, replaced_in, valid_in


class Cleaner(NamedTuple):
    """A clean-up between two requests.

    Attributes:
        waits: it waits for the retention.
        log: the log as it was listed, without gaps.
        due: numbers of entries that it has not checked yet.
        number, proven: the number of the entry whose sources it is about to delete, and those.
        seen: outputs that it found but its log does not name.
    """

    name: str
    at: str = "survey"
    waits: bool = True
    log: tuple[Entry, ...] = ()
    due: tuple[int, ...] = ()
    number: int = 0
    proven: tuple[str, ...] = ()
    seen: frozenset[str] = NOTHING

    def to(self, at: str, **changed: Any) -> Cleaner:
        return self._replace(at=at, **changed)


def survey(c: Cleaner, s3: S3) -> Cleaner:
    log, witnesses = s3.list_log()
    last = max((n for n, one in enumerate(log, 1) if one or witnesses[n - 1]), default=0)
    if None in log[:last] and "no gap in the log" not in s3.without:
        return Cleaner(c.name, "stopped")
    known = tuple(one or HOLE for one in log[:last])
    waits = c.waits and "retention" not in s3.without
    aged = s3.world.aged if waits else range(1, last + 1)
    due = (n for n, one in enumerate(known, 1) if n in aged and one.sources | one.again)
    return c.to("survey_outputs", log=known, due=tuple(sorted(set(due) - replaced_in(known))))


def survey_outputs(c: Cleaner, s3: S3) -> Cleaner:
    unnamed = s3.list_outputs() - {entry.key for entry in c.log}
    if unnamed and "comparison with the outputs" not in s3.without:
        return c.to("survey_again", seen=unnamed)
    return next_entry(c)


def survey_again(c: Cleaner, s3: S3) -> Cleaner:
    log, _ = s3.list_log()
    if c.seen - {entry.key for entry in log if entry}:
        return Cleaner(c.name, "stopped")
    return next_entry(c._replace(seen=NOTHING))


def next_entry(c: Cleaner) -> Cleaner:
    return c.to("prove", number=0) if c.due else Cleaner(c.name, "done")


def prove(c: Cleaner, s3: S3) -> Cleaner:
    """Check the entry's output and those with the content that was delivered again, by HEAD."""
    number = c.due[0]
    entry, c = c.log[number - 1], c._replace(due=c.due[1:])
    again = set(map(record_of, entry.again))
    wanted = [one for one in valid_in(c.log).values() if one is entry or one.records & again]
    is_proven = all(s3.head_output(one.key) == one.records for one in wanted if one.key)
    if not is_proven and "proof of the output" not in s3.without:
        return next_entry(c)
    looks = c.waits and not s3.without & {"retention", "look for a note since"}
    at = "look_for_note" if looks else "delete"
    return c.to(at, number=number, proven=tuple(sorted(entry.sources | entry.again)))


def look_for_note(c: Cleaner, s3: S3) -> Cleaner:
    """Check the note of publication: the output may be published since the log was listed."""
    if s3.head_note(c.number):
        return c.to("delete")
    return next_entry(c._replace(proven=()))


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


CLEAN_UP = (
    *(survey, survey_outputs, survey_again, prove, look_for_note, delete),
    *(look_at_outputs, read_source),
)
