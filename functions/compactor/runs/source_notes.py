"""A call's findings about single sources: signatures, lookalikes, and sources it cannot read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from compactor.errors import InvalidInput
from compactor.log.entries import Commit
from compactor.log.state import LogState
from compactor.model import (
    DENIED_REASONS,
    PASSING_REASONS,
    ObjectGroup,
    Quarantined,
    QuarantineReason,
    Signature,
    SourceObject,
)
from compactor.runs.partition_run import PartitionResult


class Unlike:
    """Sources whose content no entry of the log has, up to one sequence number.

    The comparison is invalid once the log grows: the next entry may have the same content, which
    would then be compacted twice.
    """

    def __init__(self) -> None:
        self._through = 0
        self._identities: set[bytes] = set()

    def add(self, identities: set[bytes], through: int) -> None:
        """Add sources whose content is in no entry up to this sequence number."""
        if through != self._through:
            self._identities, self._through = set(), through
        self._identities |= identities

    def at(self, last: int) -> set[bytes]:
        """Return the identities that need no comparison while ``last`` is the newest entry."""
        return self._identities if last == self._through else set()


class SourceNotes:
    """Signatures of sources, and sources that later plans of this call leave out.

    Args:
        result: the call's result, where unreadable sources are recorded.

    Attributes:
        signatures: signatures that differ from what keys and settings imply, by identity.
        unlike: sources that look like the content of a commit but differ from it.
        lessons: how often something new was found; each time, the current plan is out of date.
    """

    def __init__(self, result: PartitionResult) -> None:
        self._result = result
        self._aside: set[bytes] = set()
        self.signatures: dict[bytes, Signature] = {}
        self.unlike = Unlike()
        self.lessons = 0

    def learn(self, misfits: Mapping[bytes, Signature]) -> bool:
        """Keep signatures for the next plan; return True if any is new."""
        known = self.signatures
        is_news = any(known.get(identity) != one for identity, one in misfits.items())
        known.update(misfits)
        self.lessons += is_news
        return is_news

    def set_aside(self, group: ObjectGroup) -> None:
        """Leave the sources of a failed group out of every later plan of this call."""
        self.leave_out(group.sources)

    def leave_out(self, sources: Iterable[SourceObject]) -> None:
        """Leave sources out of every later plan of this call."""
        self._aside |= {one.identity for one in sources}

    def leave_unread(self, sources: Iterable[Quarantined]) -> None:
        """Leave out sources that cannot be read now; the next run tries them again."""
        found = {one.source.identity: one for one in sources}
        self._result.unread |= found
        self._aside |= found.keys()

    def without_aside(self, sources: tuple[SourceObject, ...]) -> tuple[SourceObject, ...]:
        """Return the sources without those that plans leave out."""
        if not self._aside:
            return sources
        return tuple(one for one in sources if one.identity not in self._aside)


def passing(draft: Commit) -> tuple[Quarantined, ...]:
    """Return the quarantined sources of a draft that a later run may be able to read."""
    return tuple(one for one in draft.quarantined if one.reason in PASSING_REASONS)


def without_known(draft: Commit, state: LogState) -> Commit:
    """Return the draft without unreadable sources that the log already records as such."""
    news = (
        one
        for one in draft.quarantined
        if one.reason not in PASSING_REASONS or one.source.identity not in state.passing
    )
    return replace(draft, quarantined=tuple(news))


def known_as_denied(
    group: ObjectGroup, reason: QuarantineReason, cause: str, state: LogState
) -> tuple[Quarantined, ...]:
    """Return the sources of an unreadable group that were unreadable for earlier runs, too.

    Args:
        group: a group in which no source that was tried could be read.
        reason: the reason for the first source.
        cause: S3's error for the first source.
        state: the log.

    Raises:
        InvalidInput: there are no such sources, or nothing in the partition was ever read: the
            role must be changed, not the sources.
    """
    known = [one for one in group.sources if one.identity in state.passing]
    if not known or not state.committed:
        accepted = f"a role that may read the {len(group.sources)} sources of group {group.id}"
        raise InvalidInput("permission", cause, accepted)
    detail = f"not tried, as others were denied: {cause}"
    return tuple(Quarantined(source, reason, detail) for source in known)


def require_readable(unread: Collection[Quarantined], state: LogState) -> None:
    """Require that the role can read the partition, if several sources were denied.

    A single denied source is tolerated, and so are any number once the log names a commit.

    Args:
        unread: all sources left alone for a temporary reason.
        state: the log of the partition, at the end of a run.

    Raises:
        InvalidInput: several sources were denied, and no source was ever read.
    """
    denied = [one for one in unread if one.reason in DENIED_REASONS]
    if len(denied) > 1 and not state.committed:
        first = denied[0]
        example = f"s3://{first.source.bucket}/{first.source.key}: {first.detail}"
        accepted = f"a role that may read its sources: none of {len(denied)} could be read"
        raise InvalidInput("permission", example, accepted)
