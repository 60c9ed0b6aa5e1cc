"""What a call has learned of single sources, by which its next plan differs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from compactor.model import ObjectGroup, Quarantined, Signature, SourceObject
from compactor.runs.lookalikes import Unlike
from compactor.runs.partition_run import PartitionResult


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
