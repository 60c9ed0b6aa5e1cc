"""What is known about one source: whether a run would take it, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from compactor.clock import instant
from compactor.discovery.forecast import Forecast
from compactor.discovery.search import dates_of
from compactor.log.entries import Commit
from compactor.log.log import CommitLog
from compactor.log.log_reader import StoredLog, logs_for_key
from compactor.log.manifest import ManifestRow
from compactor.model import Partition, Quarantined, SkipReason, SourceObject
from compactor.outputs.detection import decided_by
from compactor.planning.partition_listing import ListAfter, Pages
from compactor.planning.plan import Knowledge
from compactor.ports import ObjectStore
from compactor.registry.streams import PartitionScheme
from compactor.report.object_status import (
    UNKNOWN_SETTINGS,
    Inquiry,
    ObjectStatus,
    clean_up,
    commit_facts,
    commit_text,
    output_keys,
    output_status,
    settings_for,
    settings_over,
    there,
    unknown,
)
from compactor.report.reasons import OVERSIZED, moment_text, too_large, why_left
from compactor.settings.settings import Settings
from compactor.sizes import plural

# S3 encryption clients store an object's encrypted key in a second object with this suffix.
_INSTRUCTION = ".instruction"
# Reasons that depend on the whole partition, in the order in which a plan checks them.
_BY_PARTITION = (SkipReason.TOO_FEW, SkipReason.OPEN_PARTITION)


class _Mention(NamedTuple):
    """An entry of the log that names a source: compacted or quarantined."""

    log: StoredLog
    commit: Commit
    source: SourceObject
    quarantined: Quarantined | None = None

    def commits(self, present: SourceObject) -> bool:
        """Return whether this very object is compacted."""
        return self.quarantined is None and self.source.etag == present.etag


def explain(inquiry: Inquiry, given: str) -> ObjectStatus:
    """Return what is known about one object, as a source or as an output. Read-only.

    Args:
        inquiry: the destination to look in.
        given: the object's URI, its key, or its key below the source or the destination.

    Raises:
        InvalidInput: no commit names it, and it is not in the source of any run.
        IntegrityError: an entry of the log is damaged.
    """
    for key in output_keys(inquiry, given):
        if (status := output_status(inquiry, key)) is not None:
            return status
    for bucket, key in source_keys(inquiry, given):
        if (status := source_status(inquiry, bucket, key)) is not None:
            return status
    raise unknown(given, inquiry)


def source_keys(inquiry: Inquiry, given: str) -> Iterator[tuple[str, str]]:
    """Yield the buckets and keys that may be meant; the bucket is empty if it is not known."""
    if given.startswith("s3://"):
        bucket, _, key = given.removeprefix("s3://").partition("/")
        yield bucket, key
        return
    for settings in inquiry.settings:
        root = settings.source.root
        if given.startswith(root.prefix):
            yield root.bucket, given
        yield root.bucket, root.prefix + given
    yield "", given


def source_status(inquiry: Inquiry, bucket: str, key: str) -> ObjectStatus | None:
    """Return what is known about a source; None if it does not exist and no commit names it.

    Args:
        inquiry: the destination to look in.
        bucket: of the source; empty if it is not known.
        key: of the source.

    Raises:
        IntegrityError: an entry of the log is damaged.
    """
    settings = settings_over(inquiry, bucket, key)
    present = _present(inquiry.store, bucket, key) if settings is not None else None
    mention = _mention(inquiry, bucket, key, present)
    if mention is None and present is None:
        return None
    if mention is not None and settings is None:
        bucket = mention.source.bucket
        present = _present(inquiry.store, bucket, key)
        settings = settings_over(inquiry, bucket, key)
    candidate, reason = _candidate(inquiry, settings, present, mention)
    there_is = "gone" if present is None else _there(inquiry, present)
    lines = {"object": there_is, "candidate": candidate}
    lines["commit"], lines["published"], lines["clean-up"], facts = _committed(inquiry, mention)
    if mention is not None and present is not None and present.etag != mention.source.etag:
        lines["commit"] += f" (as ETag {mention.source.etag}; the object has changed since)"
    facts |= {"exists": present is not None, "candidate": not reason, "reason": reason or None}
    return ObjectStatus(f"s3://{bucket}/{key}", "source", lines, facts)


def _present(store: ObjectStore, bucket: str, key: str) -> SourceObject | None:
    """Return the object as listed, with its storage class and age."""
    pages = store.list_objects(bucket, key)
    return next((one for page in pages for one in page if one.key == key), None)


def _there(inquiry: Inquiry, present: SourceObject) -> str:
    head = inquiry.store.head(present.bucket, present.key)
    return "gone since it was listed" if head is None else there(head)


def _mention(
    inquiry: Inquiry, bucket: str, key: str, present: SourceObject | None
) -> _Mention | None:
    """Return the entry that names the present object, else the newest one that names its key."""
    newest: _Mention | None = None
    for log in logs_for_key(key, inquiry.state, inquiry.store):
        for commit in log.newest_first(inquiry.store):
            for one in _named(log, commit, key):
                if bucket and one.source.bucket != bucket:
                    continue
                if present is None or one.source.etag == present.etag:
                    return one
                newest = newest or one
    return newest


def _named(log: StoredLog, commit: Commit, key: str) -> Iterator[_Mention]:
    for source in commit.sources:
        if source.key == key:
            yield _Mention(log, commit, source)
    for one in commit.quarantined:
        if one.source.key == key:
            yield _Mention(log, commit, one.source, one)


# Whether a run would take it


def _only(store: ObjectStore, partition: Partition, *, key: str) -> ListAfter:
    """Return what lists only one object, and its instruction file if there is one."""

    def list_after(after: str) -> Pages:
        name = key.removesuffix(_INSTRUCTION)
        wanted = {name, f"{name}{_INSTRUCTION}"}
        for page in store.list_objects(partition.bucket, name):
            found = [one for one in page if one.key in wanted and one.key > after]
            if found:
                yield found
            if page and page[-1].key > max(wanted):
                return

    return list_after


def _candidate(
    inquiry: Inquiry,
    settings: Settings | None,
    present: SourceObject | None,
    mention: _Mention | None,
) -> tuple[str, str]:
    """Return whether a run would take the object now, and the name of the reason if not."""
    if present is None:
        return "no: there is no object at this key", "gone"
    if settings is None:
        return UNKNOWN_SETTINGS, "unknown"
    if mention is not None and mention.commits(present):
        return _no(SkipReason.COMMITTED, settings)
    return _planned(inquiry, settings, present, None if mention is None else mention.quarantined)


def _planned(
    inquiry: Inquiry, settings: Settings, present: SourceObject, known: Quarantined | None
) -> tuple[str, str]:
    """Return the same for an uncommitted object; ``known`` is set if it was quarantined."""
    partition = PartitionScheme(settings).partition(present.bucket, present.key)
    if partition is None:
        return _no(SkipReason.UNPARTITIONED, settings)
    if outside := _outside(settings, partition, inquiry.clock.now()):
        return outside, "outside_of_the_window"
    reason, when = _reason(inquiry, settings, present, partition)
    if reason == OVERSIZED:
        return f"no, oversized: its partition: {too_large(1)}", OVERSIZED
    if reason is None:
        return f"yes: a run over {partition.path or '(root)'} compacts it now", ""
    return _no(reason, settings, when, known)


def _no(
    reason: str, settings: Settings, when: str = "", known: Quarantined | None = None
) -> tuple[str, str]:
    if reason is SkipReason.QUARANTINED and known is not None:
        what = f"{known.reason}: {known.detail}"
        way = why_left(known.reason, settings.to_dict()).remedy
    else:
        what, way = why_left(reason, settings.to_dict(), when=when)
    return f"no, {reason}: {what}" + (f"; {way}" if way else ""), str(reason)


def _outside(settings: Settings, partition: Partition, now: float) -> str:
    """Return why the partition is outside a run's window; empty if it is inside."""
    dates = dates_of(settings, now)
    if dates is None or any(partition.path.endswith(one) for one in dates):
        return ""
    return (
        f"no: its partition {partition.path} lies outside of the window {dates[0]} to {dates[-1]};"
        " give another window"
    )


def _reason(
    inquiry: Inquiry, settings: Settings, present: SourceObject, partition: Partition
) -> tuple[SkipReason | str | None, str]:
    """Return why a plan skips the object, and until when; None if a worker or Spark takes it.

    Uses a run's own plan: first for the object alone and, if that takes it, for its whole
    partition.
    """
    now = inquiry.clock.now()
    state = CommitLog(inquiry.store, settings, partition).load()
    left_alone = state.left_alone(decided_by(settings))
    known = Knowledge(state.committed, left_alone)
    alone = replace(settings, min_objects=1)
    lists = partial(_only, inquiry.store, key=present.key)
    planned = Forecast(alone, inquiry.store, known, lists).of(partition, now)
    for reason, skipped in planned.skipped.items():
        # Open is the whole partition, which is planned below.
        if reason != SkipReason.OPEN_PARTITION and present.key in skipped.examples:
            ready = moment_text(present.last_modified + settings.settle_seconds, now)
            return reason, f"a run from {ready} on takes it"
    forecast = Forecast(settings, inquiry.store, known)
    planned = forecast.of(partition, now)
    if any(one.key == present.key for group in planned.groups for one in group.sources):
        return None, ""
    if forecast.beyond.objects:
        return (OVERSIZED if settings.spark_engine == "none" else None), ""
    ready = "" if forecast.waiting is None else moment_text(forecast.waiting.ready_at, now)
    when = f"a run from {ready} on takes it" if ready else ""
    reasons = (one for one in (*_BY_PARTITION, *planned.skipped) if one in planned.skipped)
    return next(reasons, SkipReason.TOO_FEW), when


# What became of it


def _committed(inquiry: Inquiry, mention: _Mention | None) -> tuple[str, str, str, dict[str, Any]]:
    """Return the lines about its commit, output and deletion, and the facts in them."""
    if mention is None:
        return "none", "no", "never: what is not committed is not deleted", {}
    log, commit, source, quarantined = mention
    facts = commit_facts(log, commit)
    if quarantined is not None:
        text = f"none; quarantined by {commit_text(log, commit)}"
        return text, "no", "never: what is quarantined is not deleted", facts | {"output": None}
    gone, more = clean_up(inquiry, settings_for(inquiry, commit), log, commit)
    where = f"{commit_text(log, commit)}: {_position(commit, source)}"
    return where, _published(inquiry, log, commit), gone, facts | more


def _position(commit: Commit, source: SourceObject) -> str:
    output = commit.output
    for number, row in enumerate(commit.rows, 1):
        if row.source.key == source.key:
            place = f"source {number:,} of {len(commit.rows):,}"
            return place if output is None else f"{place} in {output.key}{_range(commit, row)}"
    raise AssertionError(f"commit {commit.sequence} does not name {source.key}")


def _range(commit: Commit, row: ManifestRow) -> str:
    output = commit.output
    if output is None or output.columnar is not None:
        return ", as rows"
    stored = "" if row.facts is None else " of its decompressed content"
    return f", {plural(row.length, 'byte')} from byte {row.offset:,}{stored}"


def _published(inquiry: Inquiry, log: StoredLog, commit: Commit) -> str:
    output = commit.output
    if output is None:
        return "nothing to publish: there is no content of its own"
    where = f"s3://{output.bucket}/{output.key}"
    head = inquiry.store.head(output.bucket, output.key)
    if head is not None:
        size = plural(head.size, "byte")
        if head.size != output.size:
            return f"no: {where} has {size}, its commit says {output.size:,}"
        return f"yes: {where}, {size}, since {instant(head.last_modified)}"
    if commit.sequence <= max(log.checkpoints, default=0) or commit.sequence in log.cleaned:
        return f"it was: {where} is gone, which maintenance of a table does, or a deletion by hand"
    return f"not yet: the next run over {log.path or '(root)'} publishes {where}"
