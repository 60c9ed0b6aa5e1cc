"""What S3 answers to the read of one source: what is wrong with that source alone, and with all."""

from __future__ import annotations

import re

from compactor.conditions import StoreTraits
from compactor.errors import CompactorError, SourceChanged, UnreadableSource
from compactor.escaping import visible
from compactor.model import QuarantineReason, SourceObject
from compactor.s3.translate import Refusal, judged, worth_another_try

# In refusals of GET that concern one object, while others may be read. SSE-C: the object was
# stored with a key that only its writer has (API reference of GetObject). KMS: "KMS." and what
# KMS answered, or AccessDenied that names an action or a key of KMS.
_DENIED = frozenset({"AccessDenied", "Forbidden", "403"})
_CUSTOMER_KEY = re.compile(r"server.side encryption|customer.provided", re.IGNORECASE)
_ABOUT_KMS = re.compile(r"\bkms:|customer master key|\bKMS key\b|the ciphertext refers")
_BAD_REQUEST, _MISSING, _CHANGED = 400, 404, 412
_CODE = re.compile(r"<Code>([\w.]+)</Code>")
_MESSAGE = re.compile(r"<Message>([^<]*)</Message>")


def is_listed(source: SourceObject, found: str | None) -> bool:
    """Whether the ETag of an answer is that of the object that was listed, or none.

    Args:
        source: as it was listed.
        found: the header; of another object where something between here and the store mixes
            answers up, or keeps old ones.
    """
    etag = (found or "").removeprefix("W/").strip('"')
    return not etag or etag.lower() == source.etag.lower()


def require_etag(source: SourceObject, found: str | None, traits: StoreTraits) -> None:
    """Make sure that an answer may be that of the object that was listed.

    Args:
        source: as it was listed.
        found: the ETag of the answer.
        traits: of the store; where it ignores If-Match, there must be one.

    Raises:
        SourceChanged: it has another ETag, or none although it must.
    """
    etag = (found or "").removeprefix("W/").strip('"')
    matters = not traits.reads_if_match or (etag and traits.refuses_other_etags)
    if matters and etag.lower() != source.etag.lower():
        raise SourceChanged(source.key, source.etag, etag or "an answer without an ETag")


def judged_answer(source: SourceObject, status: int, body: str) -> CompactorError:
    """What a refused GET of a source asks of the caller.

    Args:
        source: as it was listed.
        status: of HTTP, 400 or more.
        body: of the answer.
    """
    code, message = _CODE.search(body), _MESSAGE.search(body)
    if status == _CHANGED:
        return SourceChanged(source.key, source.etag, "another ETag")
    if status == _MISSING and (code is None or code[1] != "NoSuchBucket"):
        return SourceChanged(source.key, source.etag, "no object", gone=True)
    refusal = Refusal(status, code[1] if code else str(status), message[1] if message else "")
    return judged_read(refusal, "get", source.bucket, source.key)


def judged_read(refusal: Refusal, operation: str, bucket: str, key: str) -> CompactorError:
    """What the answer asks of the caller: UnreadableSource where another source may do better."""
    reason = _only_this_object(refusal)
    if reason is None:
        return judged(refusal, operation, bucket, key)
    if reason is QuarantineReason.ARCHIVED:
        detail = f"{visible(key)} must be restored from its archive tier before it can be read"
        return UnreadableSource(reason, detail)
    return UnreadableSource(reason, f"{operation}: {refusal}")


def _only_this_object(refusal: Refusal) -> QuarantineReason | None:
    code, message = refusal.code, refusal.message
    if worth_another_try(refusal):
        return None
    if code == "InvalidObjectState":
        return QuarantineReason.ARCHIVED
    if code.startswith("KMS"):
        return QuarantineReason.ENCRYPTED
    if code in _DENIED:
        about_kms = _ABOUT_KMS.search(message) is not None
        return QuarantineReason.ENCRYPTED if about_kms else QuarantineReason.ACCESS_DENIED
    about_key = refusal.status == _BAD_REQUEST and _CUSTOMER_KEY.search(message) is not None
    return QuarantineReason.ENCRYPTED if about_key else None
