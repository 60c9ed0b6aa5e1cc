"""Errors, one class for each thing the caller can do next.

Step Functions matches errors by class name, so these names are part of the interface of
``statemachine/compaction.asl.json``.
"""

from __future__ import annotations

from collections.abc import Sequence


class CompactorError(Exception):
    """Base of every error that this project raises on purpose."""


class TransientStoreError(CompactorError):
    """The store did not answer in time or asked to slow down: retry later."""


class SourceChanged(CompactorError):
    """A source is gone or no longer has the ETag that was listed: list and plan again.

    Args:
        key: the source's key.
        etag: the ETag that was listed.
        found: what has the key now, in words.
        gone: whether the store reported that no object has the key.
    """

    def __init__(self, key: str, etag: str, found: str, *, gone: bool = False) -> None:
        super().__init__(f"source {key!r} was listed with ETag {etag}, now: {found}")
        self.key = key
        self.etag = etag
        self.found = found
        self.gone = gone


class IntegrityError(CompactorError):
    """Stored data contradicts the commit log: stop, raise an alarm, change nothing."""


#: What to do about a stored object that is not what this program wrote.
EARLIER_VERSION = "bring an earlier version of it back, as docs/operations.md says"


def damaged(where: str, why: object, remedy: str = EARLIER_VERSION) -> IntegrityError:
    """Return the error for a stored object that is not what this program wrote.

    Args:
        where: its URI.
        why: what is wrong with it.
        remedy: what the operator does next.
    """
    return IntegrityError(f"{where} is damaged: {why}; {remedy}")


def object_gone(where: str, remedy: str = "") -> IntegrityError:
    """Return the error for an object that the log names and that the store does not have."""
    return IntegrityError(f"{where} is gone: {remedy or EARLIER_VERSION}")


def require_equal(what: str, found: object, expected: object) -> None:
    """Check a count, size or checksum of stored data.

    Raises:
        IntegrityError: it differs; names what was compared, and both values.
    """
    if found != expected:
        raise IntegrityError(f"{what}: {found}, expected {expected}")


class InvalidInput(CompactorError):
    """The caller passed an invalid value; the message is one line.

    Args:
        field: name of the input field.
        value: the value passed; None if there was none.
        accepted: which values are accepted, in words.
        message: the whole message, to replace the default one.
    """

    def __init__(self, field: str, value: object, accepted: str, *, message: str = "") -> None:
        given = "no value" if value is None else f"{value!r} is not accepted"
        super().__init__(message or f"{field}: {given}; expected {accepted}")
        self.field = field
        self.value = value
        self.accepted = accepted
        self.message = message


def no_credentials(found: str = "") -> InvalidInput:
    """Return the error for missing or rejected AWS credentials, with what to do about it.

    Args:
        found: why the credentials were rejected, such as ``ExpiredToken``; empty if there are
            none.
    """
    accepted = (
        "log in (aws sso login, or aws configure), name your profile in AWS_PROFILE, set"
        " AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run where a role is attached"
    )
    why = f"the credentials found here are not taken ({found})" if found else ""
    message = f"{why or 'no AWS credentials found'}: {accepted}"
    return InvalidInput("credentials", found or None, accepted, message=message)


class NotMerged(CompactorError):
    """Commits exist that Spark has not merged into the table yet: the next run merges them."""


class PartitionsFailed(CompactorError):
    """The run ended with failed partitions: run it again to compact what is left.

    Args:
        cause: the first failures, in one line.
        report: the run's :class:`compactor.report.report.RunReport`, if the caller has it.
    """

    def __init__(self, cause: str, report: object = None) -> None:
        super().__init__(cause)
        self.report = report


class TimeRanOut(CompactorError):
    """The run's time is up. What it committed stays committed: run it again for the rest.

    Args:
        stands: what is done, in one line.
        left: paths of the partitions that are not done.
    """

    def __init__(self, stands: str, left: Sequence[str] = ()) -> None:
        super().__init__(stands)
        self.left = left


class ObjectArchived(InvalidInput):
    """An object of the state or an output is in an archive tier: restore it before reading it."""

    def __init__(self, message: str) -> None:
        super().__init__("archived", message, "an object that was restored before it is read")


class UnreadableSource(CompactorError):
    """A source's content cannot be compacted: quarantine it and continue with the others.

    Args:
        reason: one of :class:`compactor.model.QuarantineReason` values.
        detail: one line for the operator.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class NothingReadable(CompactorError):
    """The role can read none of many sources: fix its permissions, do not quarantine the sources.

    Args:
        example: URI of one of them.
        reason, detail: see :class:`UnreadableSource`.
    """

    def __init__(self, example: str, reason: str, detail: str) -> None:
        super().__init__(f"{example}: {detail}")
        self.reason = reason


class AlreadyExists(CompactorError):
    """A create-if-absent request failed because the key exists."""


class ObjectMissing(CompactorError):
    """The store has no such object, or no such upload."""


class CommitConflict(CompactorError):
    """Another run committed one of these sources first: drop the pending output and plan again."""


class TableConflict(CompactorError):
    """Another writer changed the table first, and our change was not applied: reload and retry."""


class UploadLost(CompactorError):
    """A commit's output is neither published nor pending: rebuild it from its sources."""
