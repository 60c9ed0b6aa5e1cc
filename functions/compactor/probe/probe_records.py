"""Stores the findings of a probe below the state prefix."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from compactor.conditions import DELETE_CONDITIONS, Finding, require_safe
from compactor.decoding import decoder, numbered, require_version
from compactor.errors import IntegrityError, InvalidInput, ObjectMissing
from compactor.layout import probe_key
from compactor.ports import ObjectStore
from compactor.settings.uris import S3Uri

RECORD_VERSION = 1
_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class ProbeRecord:
    """The findings of one probe of a bucket at an endpoint.

    Attributes:
        at: time of the probe by the local clock, UNIX seconds.
        findings: empty for AWS, which is not probed.
    """

    endpoint: str
    bucket: str
    at: float
    findings: tuple[Finding, ...] = ()

    def answers(self, *, deletes: bool) -> bool:
        """Return True if a run may use this record.

        Findings that end a run are not used, but probed again: the store may have been fixed.
        """
        try:
            require_safe(self.findings, self.endpoint)
        except InvalidInput:
            return False
        asked = {finding.condition for finding in self.findings}
        return bool(asked) and (not deletes or asked >= DELETE_CONDITIONS)


_decode = decoder(ProbeRecord)


def read(state: S3Uri, store: ObjectStore) -> ProbeRecord | None:
    """Return the record of this endpoint and bucket; None if there is no readable one."""
    bucket, key = probe_key(state, store.endpoint_url)
    try:
        body = store.get(bucket, key)
        require_version(f"s3://{bucket}/{key}", body, RECORD_VERSION)
        record = _decode(body)
    except (ObjectMissing, msgspec.MsgspecError, IntegrityError):
        # Only a cache: an unreadable record is replaced by the next probe.
        return None
    return record if (record.endpoint, record.bucket) == (store.endpoint_url, bucket) else None


def write(record: ProbeRecord, state: S3Uri, store: ObjectStore) -> None:
    """Write a record, replacing the previous one."""
    bucket, key = probe_key(state, record.endpoint)
    store.put(bucket, key, _encoded(record), content_type=_JSON)


def create(record: ProbeRecord, state: S3Uri, store: ObjectStore) -> None:
    """Write a record if there is none.

    Raises:
        AlreadyExists: there is a record.
    """
    bucket, key = probe_key(state, record.endpoint)
    store.create(bucket, key, _encoded(record), content_type=_JSON)


def _encoded(record: ProbeRecord) -> bytes:
    return msgspec.json.format(msgspec.json.encode(numbered(record, RECORD_VERSION)), indent=1)
