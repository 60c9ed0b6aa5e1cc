"""What a store answered when it was asked, remembered below the state prefix."""

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
    """One round of questions to one bucket at one endpoint.

    Attributes:
        at: UNIX seconds, by our clock.
        findings: nothing where AWS was not asked.
    """

    endpoint: str
    bucket: str
    at: float
    findings: tuple[Finding, ...] = ()

    def answers(self, *, deletes: bool) -> bool:
        """True when a run may go by this; what ends runs is asked again, it may be fixed."""
        try:
            require_safe(self.findings, self.endpoint)
        except InvalidInput:
            return False
        asked = {finding.condition for finding in self.findings}
        return bool(asked) and (not deletes or asked >= DELETE_CONDITIONS)


_decode = decoder(ProbeRecord)


def read(state: S3Uri, store: ObjectStore) -> ProbeRecord | None:
    """The record of this endpoint and bucket; None where there is none that can be read."""
    bucket, key = probe_key(state, store.endpoint_url)
    try:
        body = store.get(bucket, key)
        require_version(f"s3://{bucket}/{key}", body, RECORD_VERSION)
        record = _decode(body)
    except (ObjectMissing, msgspec.MsgspecError, IntegrityError):
        # No more than a memory: what cannot be read is asked again, and written over.
        return None
    return record if (record.endpoint, record.bucket) == (store.endpoint_url, bucket) else None


def write(record: ProbeRecord, state: S3Uri, store: ObjectStore) -> None:
    """Put a record in the place of the one before."""
    bucket, key = probe_key(state, record.endpoint)
    store.put(bucket, key, _encoded(record), content_type=_JSON)


def create(record: ProbeRecord, state: S3Uri, store: ObjectStore) -> None:
    """Write a record where there is none.

    Raises:
        AlreadyExists: there is one.
    """
    bucket, key = probe_key(state, record.endpoint)
    store.create(bucket, key, _encoded(record), content_type=_JSON)


def _encoded(record: ProbeRecord) -> bytes:
    return msgspec.json.format(msgspec.json.encode(numbered(record, RECORD_VERSION)), indent=1)
