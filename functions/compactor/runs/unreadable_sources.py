"""Sources left alone for a reason that may pass: what a run tells of them, and its log."""

from __future__ import annotations

from collections.abc import Collection
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
)


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
    """Those of a group of which nothing could be read that were denied to earlier runs, too.

    Args:
        group: of which the first sources were tried, and some behind them.
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
    """One denied source stops nobody; a partition of nothing else needs another role.

    Args:
        unread: all that was left alone for a reason that may pass.
        state: the log of the partition, at the end of a run.

    Raises:
        InvalidInput: several sources were denied, and none was ever read.
    """
    denied = [one for one in unread if one.reason in DENIED_REASONS]
    if len(denied) > 1 and not state.committed:
        first = denied[0]
        told = f"s3://{first.source.bucket}/{first.source.key}: {first.detail}"
        accepted = f"a role that may read its sources: none of {len(denied)} could be read"
        raise InvalidInput("permission", told, accepted)
