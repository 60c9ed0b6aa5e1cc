"""Deletes exactly the given sources, each only if it still is the object that was compacted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from botocore.exceptions import ClientError

from compactor.errors import CompactorError
from compactor.model import SourceObject
from compactor.ports import Deletes, Deletion, Refused
from compactor.s3.bodies import TimeIsUp
from compactor.s3.objects import S3Objects
from compactor.s3.translate import refusal_of, worth_another_try

DELETE_PER_REQUEST = 1_000
HEADS_CONCURRENT = 32
SINGLY_CONCURRENT = 16
# Characters that XML 1.0 forbids, and that so cannot be sent in a body of DeleteObjects.
_NOT_IN_XML = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
# S3 deletes 3,500 keys/s below a prefix. Beyond that it refuses key by key, with status 200.
_BUSY = frozenset({"SlowDown", "InternalError", "ServiceUnavailable"})
_LONGEST_WAITS_SECONDS = (0.5, 2.0, 8.0)
# These codes do not distinguish "another object" from "no object". HEAD does.
_UNCLEAR = frozenset({"PreconditionFailed", "ConditionalRequestConflict", "412", "409", "Untold"})
# Errors in the 400s that concern the process, the network or the bucket, not the keys.
_NOT_A_REFUSAL = frozenset(
    {
        "AuthorizationHeaderMalformed",
        "BadDigest",
        "ExpiredToken",
        "IllegalLocationConstraintException",
        "InvalidAccessKeyId",
        "InvalidToken",
        "NoSuchBucket",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
        "TokenRefreshRequired",
        "XAmzContentChecksumMismatch",
        "XAmzContentSHA256Mismatch",
    }
)
_BAD_REQUEST, _SERVER_ERROR, _NOT_IMPLEMENTED = 400, 500, 501
_GONE = frozenset({"NoSuchKey", "404"})
_Error = Mapping[str, Any]
#: Why sources stay on a store that honours no condition of a delete.
NO_SAFE_DELETE = (
    "this store ignores the ETags of DeleteObjects and If-Match on DeleteObject, so an object"
    " written meanwhile could be deleted: no source is deleted"
)
_UNTOLD: _Error = {"Code": "Untold", "Message": "the answer names neither its end nor an error"}


class S3Deletes(S3Objects):
    """The deleting part of :class:`compactor.ports.ObjectStore`."""

    def delete_sources(self, sources: Sequence[SourceObject]) -> Deletion:
        if self.traits.deletes is Deletes.NONE:
            return Deletion(tuple(Refused(source.key, NO_SAFE_DELETE) for source in sources))
        if self.traits.deletes is Deletes.SINGLE:
            return self._delete_singly(sources)
        return _together(self._delete_batch(batch) for batch in _batches(sources))

    def _delete_singly(self, sources: Sequence[SourceObject]) -> Deletion:
        """Delete with one request per source, for stores that ignore the ETags of DeleteObjects."""
        if not sources:
            return Deletion()
        with ThreadPoolExecutor(min(SINGLY_CONCURRENT, len(sources))) as pool:
            return _together(pool.map(lambda one: self._delete_batch([one]), sources))

    def _delete_batch(self, batch: Sequence[SourceObject]) -> Deletion:
        errors, markers = self._delete(batch)
        refused = self._judged(batch, errors)
        # Keys that the answer does not mention were mostly deleted by this very request.
        answered = {key for key, error in errors.items() if error is not _UNTOLD}
        return Deletion(refused, markers, frozenset(answered.difference(r.key for r in refused)))

    def _delete(self, batch: Sequence[SourceObject]) -> tuple[dict[str, _Error], int]:
        """Delete a batch, retrying keys that S3 was too busy for.

        Returns:
            Errors by key, and the number of delete markers that were put.
        """
        errors, markers = self._ask(batch)
        for longest in _LONGEST_WAITS_SECONDS:
            busy = [one for one in batch if _code(errors.get(one.key)) in _BUSY]
            if not busy:
                break
            self.limiter.slow_down()
            if not self.retries.pause(longest):
                break
            again, more = self._ask(busy)
            others = {key: error for key, error in errors.items() if _code(error) not in _BUSY}
            errors = others | again
            markers += more
        return errors, markers

    def _ask(self, batch: Sequence[SourceObject]) -> tuple[dict[str, _Error], int]:
        def request(_: TimeIsUp) -> tuple[dict[str, _Error], int]:
            try:
                return self._request(batch)
            except ClientError as error:
                if not _is_refusal(error):
                    raise
                words: _Error = error.response.get("Error", {})
                return dict.fromkeys((one.key for one in batch), words), 0

        return self._answer("DELETE", "delete", batch[0].bucket, batch[0].key, request)

    def _request(self, batch: Sequence[SourceObject]) -> tuple[dict[str, _Error], int]:
        first = batch[0]
        if _alone(first) or self.traits.deletes is Deletes.SINGLE:
            return self._request_one(first)
        objects: Any = [{"Key": one.key, "ETag": f'"{one.etag}"'} for one in batch]
        # Not in quiet mode: the answer shows which deletes only put a delete marker.
        answer = self.client.delete_objects(Bucket=first.bucket, Delete={"Objects": objects})
        deleted = {one.get("Key", ""): one for one in answer.get("Deleted", ())}
        errors: dict[str, _Error] = {one.get("Key", ""): one for one in answer.get("Errors", ())}
        untold = [one.key for one in batch if one.key not in deleted and one.key not in errors]
        errors |= dict.fromkeys(untold, _UNTOLD)
        return errors, sum(bool(one.get("DeleteMarker")) for one in deleted.values())

    def _request_one(self, source: SourceObject) -> tuple[dict[str, _Error], int]:
        condition: Any = {"IfMatch": f'"{source.etag}"'}
        answer = self.client.delete_object(Bucket=source.bucket, Key=source.key, **condition)
        return {}, int(bool(answer.get("DeleteMarker")))

    def _judged(
        self, sources: Sequence[SourceObject], errors: Mapping[str, _Error]
    ) -> tuple[Refused, ...]:
        """Return the keys not deleted: replaced by another object, or still there."""
        unclear, refused = [], []
        for source in sources:
            error = errors.get(source.key)
            if error is None or _code(error) in _GONE:
                continue
            if _code(error) in _UNCLEAR:
                unclear.append(source)
            else:
                refused.append(Refused(source.key, _words(error)))
        if unclear:
            with ThreadPoolExecutor(min(HEADS_CONCURRENT, len(unclear))) as pool:
                found = pool.map(lambda source: self._seen(source, errors[source.key]), unclear)
                refused += [one for one in found if one is not None]
        return tuple(refused)

    def _seen(self, source: SourceObject, error: _Error) -> Refused | None:
        """Look at a key with HEAD; return None if it has no object any more."""
        try:
            head = self.head(source.bucket, source.key)
        except CompactorError as problem:
            return Refused(source.key, f"{_words(error)}; HEAD: {problem}")
        if head is None:
            return None
        if head.etag != source.etag:
            return Refused(source.key, "PreconditionFailed: it has another ETag", final=True)
        return Refused(source.key, _words(error))


def _together(done: Iterable[Deletion]) -> Deletion:
    refused, markers, absent = list[Refused](), 0, set[str]()
    for one in done:
        refused += one.refused
        markers += one.markers
        absent |= one.absent
    return Deletion(tuple(refused), markers, frozenset(absent))


def _is_refusal(error: ClientError) -> bool:
    refusal = refusal_of(error)
    status, code = refusal.status, refusal.code
    if code in _NOT_A_REFUSAL or (code not in _UNCLEAR and worth_another_try(refusal)):
        return False
    return _BAD_REQUEST <= status < _SERVER_ERROR or status == _NOT_IMPLEMENTED


def _code(error: _Error | None) -> str:
    return str(error.get("Code", "")) if error else ""


def _words(error: _Error) -> str:
    return f"{_code(error)}: {error.get('Message', '')}"


def _alone(source: SourceObject) -> bool:
    return _NOT_IN_XML.search(source.key) is not None


def _batches(sources: Iterable[SourceObject]) -> Iterable[list[SourceObject]]:
    """Yield the batches for single requests: 1,000 sources, or one whose key XML cannot hold."""
    together: list[SourceObject] = []
    for source in sources:
        if _alone(source):
            yield [source]
        else:
            together.append(source)
    for start in range(0, len(together), DELETE_PER_REQUEST):
        yield together[start : start + DELETE_PER_REQUEST]
