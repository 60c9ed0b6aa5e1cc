"""Probes whether a store honours the conditions on which compaction's guarantees rest.

:mod:`compactor.probe.questions` has the questions. They are asked below the state prefix, without
touching sources and outputs: the server is assumed to treat all its buckets alike.
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
# Assumed of a store that was never probed, by callers that must not probe it: its checksums of
# copied parts may be wrong.
_UNASKED = StoreTraits(copies=False, knows_copied_crc32=False)


def ensure_asked(
    state: S3Uri, store: ObjectStore, now: float, *, deletes: bool = False
) -> Sequence[Finding]:
    """Return the findings about a run's store, probing it at most once a day.

    AWS itself is not probed. There, only the record is written, once a day, with If-None-Match and
    over an existing object. This checks that conditional writes below the state prefix are allowed,
    and that no proxy drops the condition.

    Args:
        state: where the state lies, in the bucket that is probed.
        store: the store.
        now: UNIX seconds.
        deletes: probe the conditions of deletes, too.

    Raises:
        InvalidInput: an indispensable condition is not honoured, or the state prefix cannot be
            written.
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
    """Return whether :func:`ensure_asked` would use its record. Reads only that record."""
    record = probe_records.read(state, store)
    aws = is_aws(store.endpoint_url)
    return record is not None and _still_counts(record, now, aws=aws, deletes=deletes)


def _still_counts(record: ProbeRecord, now: float, *, aws: bool, deletes: bool) -> bool:
    fresh = abs(now - record.at) < REMEMBERED_SECONDS
    return fresh and (aws or record.answers(deletes=deletes))


def traits_for(
    state: S3Uri, store: ObjectStore, now: float, *, deletes: bool = False
) -> StoreTraits:
    """Return the store's traits for a worker, from the record of discovery, whatever its age.

    Without a usable record, the store is probed now. On AWS, no request is made.

    Raises:
        InvalidInput: see :func:`ensure_asked`.
        TransientStoreError: see :func:`ensure_asked`.
    """
    if is_aws(store.endpoint_url):
        return StoreTraits()
    record = probe_records.read(state, store)
    if record is not None and record.answers(deletes=deletes):
        return traits_of(record.findings)
    return traits_of(ensure_asked(state, store, now, deletes=deletes))


def recorded_traits(state: S3Uri, store: ObjectStore) -> StoreTraits:
    """Return the traits for a caller that only reads; without a record, cautious ones."""
    if is_aws(store.endpoint_url):
        return StoreTraits()
    record = probe_records.read(state, store)
    return _UNASKED if record is None else traits_of(record.findings)


def ask_and_record(
    state: S3Uri, store: ObjectStore, now: float, *, deletes: bool
) -> Sequence[Finding]:
    """Probe every condition now, and store the findings, good or bad."""
    # Rarely needed: workers read the record that discovery wrote.
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
            # Another run may create it at the same moment.
            probe_records.create(record, state, store)
    ignored = (Finding(Condition.CREATE, Verdict.IGNORED),)
    try:
        # If this overwrites the record, all runs of the day find that the condition is ignored.
        probe_records.create(replace(record, findings=ignored), state, store)
    except AlreadyExists:
        if before is not None:
            probe_records.write(record, state, store)
        return ()
    return ignored
