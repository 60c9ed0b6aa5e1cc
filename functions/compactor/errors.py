"""Errors named for what their caller does next.

Step Functions matches errors by class name, so these names are part of the interface of
``statemachine/compaction.asl.json``.
"""

from __future__ import annotations

from collections.abc import Sequence


class CompactorError(Exception):
    """Base of every error this project raises on purpose."""


class TransientStoreError(CompactorError):
    """The store did not answer in time or asked to slow down: call again later."""


class SourceChanged(CompactorError):
    """A source is gone or no longer has the ETag that was listed: list and plan again.

    Args:
        key: of the source.
        etag: as it was listed.
        found: what is there now, in words.
        gone: the store said that nothing is.
    """

    def __init__(self, key: str, etag: str, found: str, *, gone: bool = False) -> None:
        super().__init__(f"source {key!r} was listed with ETag {etag}, now: {found}")
        self.key = key
        self.etag = etag
        self.found = found
        self.gone = gone


class IntegrityError(CompactorError):
    """Something stored contradicts the commit log: stop, alarm, touch nothing."""


class InvalidInput(CompactorError):
    """The caller's mistake, in one line.

    Args:
        field: name of the input field at fault.
        value: what was given; None where nothing was.
        accepted: what would have been right, in words.
        message: the line itself, where no value was given, or more is to be said.
    """

    def __init__(self, field: str, value: object, accepted: str, *, message: str = "") -> None:
        given = "no value" if value is None else f"{value!r} is not accepted"
        super().__init__(message or f"{field}: {given}; expected {accepted}")
        self.field = field
        self.value = value
        self.accepted = accepted
        self.message = message


def no_credentials(found: str = "") -> InvalidInput:
    """The error that AWS cannot be asked, with what to do.

    Args:
        found: why those that were found are of no use, such as ``ExpiredToken``; empty where none
            were found.
    """
    accepted = (
        "log in (aws sso login, or aws configure), name your profile in AWS_PROFILE, set"
        " AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run where a role is attached"
    )
    why = f"the credentials found here are not taken ({found})" if found else ""
    message = f"{why or 'no AWS credentials found'}: {accepted}"
    return InvalidInput("credentials", found or None, accepted, message=message)


class NotMerged(CompactorError):
    """Something is committed that Spark has not merged into the table: the next run merges it."""


class PartitionsFailed(CompactorError):
    """The run is over, and not everything is compacted: run it again, it redoes what is left.

    Args:
        cause: the first failures, in one line.
        report: the run's :class:`compactor.report.report.RunReport`, where there is one at hand.
    """

    def __init__(self, cause: str, report: object = None) -> None:
        super().__init__(cause)
        self.report = report


class TimeRanOut(CompactorError):
    """The time that a run was given is over: what was committed stands, run it again for the rest.

    Args:
        stands: what is done, in one line.
        left: paths of the partitions that are not.
    """

    def __init__(self, stands: str, left: Sequence[str] = ()) -> None:
        super().__init__(stands)
        self.left = left


class ObjectArchived(InvalidInput):
    """An object of ours lies in an archive tier: its bytes can be read once it is restored."""

    def __init__(self, message: str) -> None:
        super().__init__("archived", message, "an object that was restored before it is read")


class UnreadableSource(CompactorError):
    """A source's content cannot be compacted: quarantine it, and continue with the others.

    Args:
        reason: one of :class:`compactor.model.QuarantineReason` values.
        detail: one line for a person.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class NothingReadable(CompactorError):
    """None of many sources may be read: the role, not the sources, is what must be changed.

    Args:
        example: one of them, as a URI.
        reason, detail: as :class:`UnreadableSource` has them.
    """

    def __init__(self, example: str, reason: str, detail: str) -> None:
        super().__init__(f"{example}: {detail}")
        self.reason = reason


class CopyRefused(CompactorError):
    """S3 does not copy a source: read it instead, or leave it alone."""


class AlreadyExists(CompactorError):
    """A create-if-absent request found the key taken."""


class ObjectMissing(CompactorError):
    """The store has no such object (or no such upload)."""


class CommitConflict(CompactorError):
    """Another run committed one of these sources first: drop the pending output, plan again."""


class TableConflict(CompactorError):
    """Another writer changed the table first, and nothing of ours is in it: reload it and retry."""


class UploadLost(CompactorError):
    """A commit's output is neither published nor pending: build it again from its sources."""
