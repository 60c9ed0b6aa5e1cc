"""What S3 answers to the read of one source: what is wrong with that source alone is told apart."""

from __future__ import annotations

import re

from compactor.errors import CompactorError, UnreadableSource
from compactor.model import QuarantineReason
from compactor.shown import visible
from compactor.stores.translate import Refusal, judged, worth_another_try

# In refusals of GET that concern one object, whoever else may be read. SSE-C: the object was
# stored with a key that only its writer has (API reference of GetObject). KMS: "KMS." and what
# KMS answered, or AccessDenied that names an action or a key of KMS.
_DENIED = frozenset({"AccessDenied", "Forbidden", "403"})
_CUSTOMER_KEY = re.compile(r"server.side encryption|customer.provided", re.IGNORECASE)
_ABOUT_KMS = re.compile(r"\bkms:|customer master key|\bKMS key\b|the ciphertext refers")
_BAD_REQUEST = 400


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
