"""What is known about one object, a source or an output, in five lines. Read-only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

import msgspec

from compactor.cleaning import output_proof
from compactor.cleaning.clean_partition import CleanUpRun, decide
from compactor.cleaning.clean_up_records import read_record
from compactor.clock import NoDeadline, instant
from compactor.errors import IntegrityError, InvalidInput
from compactor.log.entries import Commit, Output
from compactor.log.log_reader import StoredLog, commit_of_output
from compactor.ports import Clock, ObjectHead, ObjectStore
from compactor.settings.settings import Settings
from compactor.settings.uris import S3Uri
from compactor.sizes import plural

UNKNOWN_SETTINGS = "unknown: no run over this source has left a report, so its settings are unknown"


class Inquiry(msgspec.Struct, frozen=True):
    """A destination, and what is needed to explain its objects.

    Attributes:
        destination: of the runs.
        state: of the runs.
        settings: of the newest run over each source, newest first; empty if no run has left a
            report.
    """

    destination: S3Uri
    state: S3Uri
    store: ObjectStore
    clock: Clock
    settings: Sequence[Settings] = ()


class ObjectStatus(msgspec.Struct, frozen=True):
    """What is known about one object.

    Attributes:
        uri: of the object.
        kind: ``source`` or ``output``.
        lines: one sentence for each question, by the question's name, in order.
        facts: the same in machine-readable form, as far as known.
    """

    uri: str
    kind: str
    lines: dict[str, str]
    facts: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        return {"uri": self.uri, "kind": self.kind, "lines": self.lines, **self.facts}


def output_status(inquiry: Inquiry, key: str) -> ObjectStatus | None:
    """Return what is known about an output; None if no commit names it.

    Args:
        inquiry: the destination to look in.
        key: of the output, in the destination.

    Raises:
        IntegrityError: an entry of the log is damaged.
    """
    found = commit_of_output(key, inquiry.destination, inquiry.state, inquiry.store)
    if found is None:
        return None
    log, commit, output = found
    head = inquiry.store.head(output.bucket, key)
    settings = settings_for(inquiry, commit)
    verified, proven = _verified(inquiry, commit, output, head)
    gone, facts = clean_up(inquiry, settings, log, commit)
    lines = {
        "object": "missing" if head is None else there(head),
        "commit": commit_text(log, commit),
        "sources": _sources_text(commit, output),
        "verified": verified,
        "clean-up": gone,
    }
    facts |= commit_facts(log, commit) | {"published": head is not None, "verified": proven}
    return ObjectStatus(f"s3://{output.bucket}/{key}", "output", lines, facts)


def output_keys(inquiry: Inquiry, given: str) -> Iterator[str]:
    """Yield the keys that may be meant: in the bucket, or below the destination."""
    destination = inquiry.destination
    key = given.removeprefix(f"s3://{destination.bucket}/")
    if key.startswith("s3://"):
        return
    if key.startswith(destination.prefix):
        yield key
    if key == given:
        yield destination.prefix + key


def settings_for(inquiry: Inquiry, commit: Commit) -> Settings | None:
    """Return the settings of the newest run over a commit's source; None without a report."""
    return settings_over(inquiry, commit.source_bucket, next((s.key for s in commit.sources), ""))


def settings_over(inquiry: Inquiry, bucket: str, key: str) -> Settings | None:
    """Return the settings of the newest run whose source a key is below, or None."""
    for settings in inquiry.settings:
        root = settings.source.root
        if bucket == root.bucket and key.startswith(root.prefix):
            return settings
    return None


def there(head: ObjectHead) -> str:
    """Return the line about an object that exists."""
    since = instant(head.last_modified)
    return f"exists: {plural(head.size, 'byte')}, ETag {head.etag}, last modified {since}"


def commit_text(log: StoredLog, commit: Commit) -> str:
    """Return which entry of which partition a commit is, by which run and when."""
    where = f"entry {commit.sequence} of partition {log.path or '(root)'}"
    return f"{where}, by run {commit.run_id} at {instant(commit.created_at)}"


def commit_facts(log: StoredLog, commit: Commit) -> dict[str, Any]:
    """Return the same in machine-readable form."""
    output = commit.output
    return {
        "partition": log.path,
        "sequence": commit.sequence,
        "run_id": commit.run_id,
        "committed_at": instant(commit.created_at),
        "output": None if output is None else f"s3://{output.bucket}/{output.key}",
    }


def clean_up(
    inquiry: Inquiry, settings: Settings | None, log: StoredLog, commit: Commit
) -> tuple[str, dict[str, Any]]:
    """Return when a commit's sources were or will be deleted, or why they are kept; and facts.

    Raises:
        IntegrityError: the clean-up's record of the commit is damaged.
    """
    sequence = commit.sequence
    if sequence in log.cleaned:
        where = log.record_key_of(sequence)
        record = read_record(inquiry.store, log.state.bucket, where, commit.commit_id)
        at = instant(record.at)
        text = f"done at {at} by run {record.run_id}: {plural(record.deleted, 'source')} deleted"
        if record.changed:
            text += f", {record.changed:,} stayed because another object was at their key"
        return text, {"cleaned_at": at, "due_at": None}
    if settings is None:
        return UNKNOWN_SETTINGS, {"cleaned_at": None, "due_at": None}
    if not settings.deletes:
        text = "never: delete_after is null, so sources stay"
        return text, {"cleaned_at": None, "due_at": None}
    since = log.readable_since[sequence]
    if not isfinite(since):
        text = "waits for the next run on the partition to check that its output can be read"
        return text, {"cleaned_at": None, "due_at": None}
    due = since + settings.retention_seconds
    text = f"due from {instant(due)} on, by delete_after ({settings.delete_after})"
    if due <= inquiry.clock.now():
        text = f"due since {instant(due)}; {_decision(inquiry, settings, log, sequence)}"
    return text, {"cleaned_at": None, "due_at": instant(due)}


def _decision(inquiry: Inquiry, settings: Settings, log: StoredLog, sequence: int) -> str:
    """Return what a clean-up would do now with a commit that is past retention."""
    store, clock = inquiry.store, inquiry.clock
    run = CleanUpRun(log.path, settings, store, clock, NoDeadline(), "explain", only={sequence: ""})
    found = decide(run)
    if found.error or found.unsafe:
        return f"kept: {found.error or found.unsafe[0]}"
    if found.elsewhere:
        return f"kept: it is not of the source {settings.s3_source_uri}"
    if found.waiting:
        return found.warnings[0]
    if found.due:
        return "; ".join(("the next clean-up deletes its sources", *found.warnings))
    return "waits: the output is not in the table yet"


def _sources_text(commit: Commit, output: Output) -> str:
    count = len(commit.sources)
    stored = sum(one.size for one in commit.sources)
    records = "records not counted" if output.records is None else plural(output.records, "record")
    return f"{plural(count, 'source')}, {plural(stored, 'byte')}, {records}"


def _verified(
    inquiry: Inquiry, commit: Commit, output: Output, head: ObjectHead | None
) -> tuple[str, bool]:
    if head is None:
        return "no: there is no object to verify", False
    try:
        output_proof.prove(output, head)
    except IntegrityError as error:
        return f"no: {error}", False
    return (
        "yes, before its commit; the stored object still matches it (compactor verify reads it)",
        True,
    )


def unknown(given: str, inquiry: Inquiry) -> InvalidInput:
    """Return the error for a key that is in no commit and in no source."""
    sources = ", ".join(dict.fromkeys(one.s3_source_uri for one in inquiry.settings))
    what = f"no commit below {inquiry.state.uri} names {given}"
    if sources:
        what += f", and there is no such object in {sources}"
    return InvalidInput("KEY", given, "the key of a source or of an output", message=what)
