"""A stored output that no reader sees yet, and what is known of its sources."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from compactor.log.content_index import overwritten
from compactor.log.entries import Commit, Output
from compactor.log.manifest import ManifestRow
from compactor.model import (
    Again,
    ObjectGroup,
    Quarantined,
    QuarantineReason,
    Signature,
    SourceObject,
)
from compactor.second_reading import Sample


@dataclass(frozen=True, slots=True)
class Tally:
    """What the writer counted, independent of the manifest.

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
    """Result of compacting one group: no reader sees it yet.

    Attributes:
        output: None when no source had any content.
        misfits: signatures of the sources that belong into another output, by identity.
        again: sources that look like what a commit has already.
        later: sources that the time did not suffice for: they are left to the next plan.
        replays: the sources are rejects of earlier commits.
        sample: what is read a second time before the commit; None where nothing is.
    """

    group: ObjectGroup
    output: Output | None
    rows: tuple[ManifestRow, ...]
    quarantined: tuple[Quarantined, ...] = ()
    again: tuple[Again, ...] = ()
    later: tuple[SourceObject, ...] = ()
    misfits: Mapping[bytes, Signature] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)
    replays: bool = False
    sample: Sample | None = field(default=None, compare=False, repr=False)

    def draft(self, run_id: str, now: float, replaces: int | None = None) -> Commit:
        """The commit that would publish this output; its sequence is not known yet."""
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
            again=self.again,
            overwritten=overwritten(self.group, self.rows),
            replays=self.replays,
        )

    def withheld(self, differences: str) -> PendingOutput:
        """The same without its output: the sources in it are left alone.

        Args:
            differences: what a second reader saw, in one line.
        """
        detail = f"its group {self.group.id} is withheld: {differences}"
        left = (Quarantined(r.source, QuarantineReason.RECORDS_DIFFER, detail) for r in self.rows)
        quarantined = (*self.quarantined, *left)
        return replace(self, output=None, rows=(), quarantined=quarantined, sample=None)
