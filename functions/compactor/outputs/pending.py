"""A stored output that is not readable yet, with an account of its sources."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from compactor.log.entries import Commit, Output
from compactor.log.manifest import ManifestRow
from compactor.model import (
    ObjectGroup,
    Quarantined,
    QuarantineReason,
    Signature,
    SourceObject,
)


@dataclass(frozen=True, slots=True)
class Tally:
    """The writer's counts, independent of the manifest.

    Attributes:
        plain_bytes: bytes given to the encoder.
        newlines: how many of them were line feeds.
        frame_bytes: bytes among them that belong to no source: opening, separators, closing.
        frame_newlines: line feeds among the opening and the closing.
    """

    plain_bytes: int = 0
    newlines: int = 0
    frame_bytes: int = 0
    frame_newlines: int = 0


@dataclass(frozen=True, slots=True)
class PendingOutput:
    """The result of compacting one group, before its commit.

    Attributes:
        output: None if no source had any content.
        misfits: signatures of the sources that belong in another output, by identity.
        later: sources left to the next plan because time ran out.
    """

    group: ObjectGroup
    output: Output | None
    rows: tuple[ManifestRow, ...]
    quarantined: tuple[Quarantined, ...] = ()
    later: tuple[SourceObject, ...] = ()
    misfits: Mapping[bytes, Signature] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)

    @classmethod
    def of_none(cls, group: ObjectGroup, why: str) -> PendingOutput:
        """Return the result of a group all of whose sources are left alone until declared."""
        reason = QuarantineReason.UNKNOWN_FORMAT
        left_alone = tuple(Quarantined(source, reason, why) for source in group.sources)
        return cls(group, None, (), quarantined=left_alone)

    def draft(self, run_id: str, now: float, replaces: int | None = None) -> Commit:
        """Return the commit that would publish this output; its sequence number is not set yet."""
        return Commit(
            sequence=0,
            commit_id=uuid.uuid4().hex,
            run_id=run_id,
            created_at=now,
            source_bucket=self.group.sources[0].bucket,
            group_id=self.group.id,
            output=self.output,
            rows=self.rows,
            quarantined=self.quarantined,
            replaces=replaces,
        )
