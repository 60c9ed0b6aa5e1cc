"""What a call has learned of single sources: formats, lookalikes, and what it may not read."""

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
    """What was compared with all entries of a log, up to one of them.

    The next entry may have just that content: a run that trusts the comparison any longer compacts
    it twice.
    """

    def __init__(self) -> None:
        self._through = 0
        self._identities: set[bytes] = set()

    def add(self, identities: set[bytes], through: int) -> None:
        """Note sources that no entry up to this sequence has the content of."""
        if through != self._through:
            self._identities, self._through = set(), through
        self._identities |= identities

    def at(self, last: int) -> set[bytes]:
        """The identities of those that need not be compared while this is the newest entry."""
        return self._identities if last == self._through else set()


class SourceNotes:
    """Signatures of sources, and sources that no plan of this call takes any more.

    Args:
        result: of the call; sources that may not be read are counted there.

    Attributes:
        signatures: by identity, where they are not what keys and settings say.
        unlike: sources that only look like the content of a commit.
        lessons: how often something new was learned: the plan before it is out of date.
    """

    def __init__(self, result: PartitionResult) -> None:
        self._result = result
        self._aside: set[bytes] = set()
        self.signatures: dict[bytes, Signature] = {}
        self.unlike = Unlike()
        self.lessons = 0

    def learn(self, misfits: Mapping[bytes, Signature]) -> bool:
        """Remember signatures for the next plan; True when that will be another one."""
        known = self.signatures
        is_news = any(known.get(identity) != one for identity, one in misfits.items())
        known.update(misfits)
        self.lessons += is_news
        return is_news

    def set_aside(self, group: ObjectGroup) -> None:
        """Leave the sources of a group that failed out of every later plan of this call."""
        self.leave_out(group.sources)

    def leave_out(self, sources: Iterable[SourceObject]) -> None:
        """Leave sources out of every later plan of this call."""
        self._aside |= {one.identity for one in sources}

    def leave_unread(self, sources: Iterable[Quarantined]) -> None:
        """Leave out sources that may not be read now; the next run tries them again."""
        found = {one.source.identity: one for one in sources}
        self._result.unread |= found
        self._aside |= found.keys()

    def without_aside(self, sources: tuple[SourceObject, ...]) -> tuple[SourceObject, ...]:
        """The sources that a plan may take."""
        if not self._aside:
            return sources
        return tuple(one for one in sources if one.identity not in self._aside)


def passing(draft: Commit) -> tuple[Quarantined, ...]:
    """The sources of a draft that another run may be able to read."""
    return tuple(one for one in draft.quarantined if one.reason in PASSING_REASONS)


def without_known(draft: Commit, state: LogState) -> Commit:
    """The draft without what the log says of such sources already: once is enough."""
    news = (
        one
        for one in draft.quarantined
        if one.reason not in PASSING_REASONS or one.source.identity not in state.passing
    )
    return replace(draft, quarantined=tuple(news))


def known_as_denied(
    group: ObjectGroup, reason: QuarantineReason, cause: str, state: LogState
) -> tuple[Quarantined, ...]:
    """Sources of a group without a readable one that were denied to earlier runs, too.

    Args:
        group: of which the first sources were tried, and some after them.
        reason: of the first.
        cause: what S3 said of it.
        state: the log.

    Raises:
        InvalidInput: there are none, or nothing of the partition was ever read: it is the role,
            not the sources, that must be changed.
    """
    known = [one for one in group.sources if one.identity in state.passing]
    if not known or not state.committed:
        accepted = f"a role that may read the {len(group.sources)} sources of group {group.id}"
        raise InvalidInput("permission", cause, accepted)
    detail = f"not tried, as others were denied: {cause}"
    return tuple(Quarantined(source, reason, detail) for source in known)


def require_readable(unread: Collection[Quarantined], state: LogState) -> None:
    """One denied source stops nothing; a partition of nothing else needs another role.

    Args:
        unread: all that was left alone for a reason that may pass.
        state: the log of the partition, at the end of a run.

    Raises:
        InvalidInput: several sources were denied, and none was ever read.
    """
    denied = [one for one in unread if one.reason in DENIED_REASONS]
    if len(denied) > 1 and not state.committed:
        first = denied[0]
        example = f"s3://{first.source.bucket}/{first.source.key}: {first.detail}"
        accepted = f"a role that may read its sources: none of {len(denied)} could be read"
        raise InvalidInput("permission", example, accepted)
