"""Ask a store whether it honours what the promises stand on, before anything is trusted to it.

:mod:`compactor.probe.questions` has the questions. They are asked below the state prefix; sources
and outputs are not touched: that the server treats all its buckets alike is taken for granted.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from compactor.conditions import (
    Condition,
    Finding,
    StoreTraits,
    Verdict,
    is_aws,
    require_safe,
    traits_of,
)
from compactor.errors import AlreadyExists
from compactor.layout import probe_prefix
from compactor.ports import ObjectStore
from compactor.probe import probe_records
from compactor.probe.probe_records import ProbeRecord
from compactor.settings.uris import S3Uri

REMEMBERED_SECONDS = 86_400.0
# What is known of a store that was never asked, and shall not be: it may keep wrong checksums.
_UNASKED = StoreTraits(copies=False, knows_copied_crc32=False)


def ensure_asked(
    state: S3Uri, store: ObjectStore, now: float, *, deletes: bool = False
) -> Sequence[Finding]:
    """What the store of a run makes of each condition; asked once a day, and remembered.

    AWS itself is not asked. There the record alone is written, once a day, with If-None-Match and
    against an object that is there: that conditional writes below the state prefix are allowed,
    and that nothing on the way drops the condition.

    Args:
        state: where the state lies, in the bucket that is asked.
        store: where requests go.
        now: UNIX seconds.
        deletes: ask for the conditions of deletes, too.

    Raises:
        InvalidInput: one is not honoured, and nothing is safe without it; or the state prefix
            cannot be written.
        TransientStoreError: the store did not answer.
    """
    record = probe_records.read(state, store)
    aws = is_aws(store.endpoint_url)
    findings: Sequence[Finding]
    if record is not None and _still_counts(record, now, aws=aws, deletes=deletes):
        findings = record.findings
    elif aws:
        findings = _write_twice(state, store, now, record)
    else:
        findings = ask_and_record(state, store, now, deletes=deletes)
    require_safe(findings, store.endpoint_url)
    return () if aws else findings


def was_asked(state: S3Uri, store: ObjectStore, now: float, *, deletes: bool = False) -> bool:
    """Whether :func:`ensure_asked` would go by its record; reads that record alone."""
    record = probe_records.read(state, store)
    aws = is_aws(store.endpoint_url)
    return record is not None and _still_counts(record, now, aws=aws, deletes=deletes)


def _still_counts(record: ProbeRecord, now: float, *, aws: bool, deletes: bool) -> bool:
    fresh = abs(now - record.at) < REMEMBERED_SECONDS
    return fresh and (aws or record.answers(deletes=deletes))


def traits_for(
    state: S3Uri, store: ObjectStore, now: float, *, deletes: bool = False
) -> StoreTraits:
    """The ways for a worker of a run: from the record that discovery left, whatever its age.

    Where there is none the store is asked now. AWS costs no request.

    Raises:
        InvalidInput: as :func:`ensure_asked` does.
        TransientStoreError: likewise.
    """
    if is_aws(store.endpoint_url):
        return StoreTraits()
    record = probe_records.read(state, store)
    if record is not None and record.answers(deletes=deletes):
        return traits_of(record.findings)
    return traits_of(ensure_asked(state, store, now, deletes=deletes))


def recorded_traits(state: S3Uri, store: ObjectStore) -> StoreTraits:
    """The traits for a caller that only reads; without a record those that trust the least."""
    if is_aws(store.endpoint_url):
        return StoreTraits()
    record = probe_records.read(state, store)
    return _UNASKED if record is None else traits_of(record.findings)


def ask_and_record(
    state: S3Uri, store: ObjectStore, now: float, *, deletes: bool
) -> Sequence[Finding]:
    """Ask for every condition now, and remember the answers, good or bad."""
    # A worker reads what discovery has asked.
    from compactor.probe.questions import Questions  # noqa: PLC0415 - see above

    bucket, prefix = probe_prefix(state, uuid.uuid4().hex)
    findings = tuple(Questions(store, bucket, prefix).ask(deletes=deletes))
    record = ProbeRecord(store.endpoint_url, bucket, now, findings)
    probe_records.write(record, state, store)
    return findings


def _write_twice(
    state: S3Uri, store: ObjectStore, now: float, before: ProbeRecord | None
) -> Sequence[Finding]:
    record = ProbeRecord(store.endpoint_url, state.bucket, now)
    if before is None:
        with suppress(AlreadyExists):
            # Another run's, of this moment.
            probe_records.create(record, state, store)
    ignored = (Finding(Condition.CREATE, Verdict.IGNORED),)
    try:
        # Where this is written after all, it says so to every run of the day.
        probe_records.create(replace(record, findings=ignored), state, store)
    except AlreadyExists:
        if before is not None:
            probe_records.write(record, state, store)
        return ()
    return ignored
