"""Classifies refused reads: problems of one source, and problems of all."""

from __future__ import annotations

import re

from compactor.errors import CompactorError, SourceChanged, UnreadableSource
from compactor.escaping import visible
from compactor.model import QuarantineReason, SourceObject
from compactor.s3.translate import Refusal, judged, worth_another_try

# Refusals of GET that concern one object, while others may be readable. SSE-C: the object was
# stored with a key that only its writer has (API reference of GetObject). KMS: a code that is
# "KMS." and KMS's own code, or an AccessDenied that names a KMS action or key.
_DENIED = frozenset({"AccessDenied", "Forbidden", "403"})
_CUSTOMER_KEY = re.compile(r"server.side encryption|customer.provided", re.IGNORECASE)
_ABOUT_KMS = re.compile(r"\bkms:|customer master key|\bKMS key\b|the ciphertext refers")
_BAD_REQUEST, _MISSING, _CHANGED = 400, 404, 412
_CODE = re.compile(r"<Code>([\w.]+)</Code>")
_MESSAGE = re.compile(r"<Message>([^<]*)</Message>")


def is_listed(source: SourceObject, found: str | None) -> bool:
    """Return whether an answer has the listed ETag or no ETag.

    Args:
        source: the source as listed.
        found: the ETag header. It may be that of another object if a proxy mixes up answers or
            caches old ones.
    """
    etag = (found or "").removeprefix("W/").strip('"')
    return not etag or etag.lower() == source.etag.lower()


def require_etag(source: SourceObject, found: str | None) -> None:
    """Check that an answer can be that of the listed object; see :func:`is_listed`.

    Raises:
        SourceChanged: the answer has another ETag.
    """
    if not is_listed(source, found):
        etag = (found or "").removeprefix("W/").strip('"')
        raise SourceChanged(source.key, source.etag, etag)


def judged_answer(source: SourceObject, status: int, body: str) -> CompactorError:
    """Return the error for a refused GET of a source.

    Args:
        source: the source as listed.
        status: HTTP status, 400 or more.
        body: body of the answer.
    """
    code, message = _CODE.search(body), _MESSAGE.search(body)
    if status == _CHANGED:
        return SourceChanged(source.key, source.etag, "another ETag")
    if status == _MISSING and (code is None or code[1] != "NoSuchBucket"):
        return SourceChanged(source.key, source.etag, "no object", gone=True)
    refusal = Refusal(status, code[1] if code else str(status), message[1] if message else "")
    return judged_read(refusal, "get", source.bucket, source.key)


def judged_read(refusal: Refusal, operation: str, bucket: str, key: str) -> CompactorError:
    """Return the error for a refused read: UnreadableSource if other sources may be readable."""
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
