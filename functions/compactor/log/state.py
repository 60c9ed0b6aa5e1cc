"""The state of a partition's commit log, as a pure fold over its entries.

The log is the sequence of objects ``commits/<seq>.json.gz``, each written once with
``If-None-Match: *``, so every run sees the same order of commits. A commit may replace an earlier
one whose output was lost before it was published; the replaced commit is then void. A checkpoint
sums up all commits through one sequence number, all of them published.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from math import inf

import msgspec

from compactor.log import left_alone, manifest
from compactor.log.content_index import Contents
from compactor.log.digests import Digests
from compactor.log.entries import NOTHING, Commit, output_digest, same_log
from compactor.log.left_alone import BY_SETTINGS, LeftAlone
from compactor.log.size_counts import SizeCounts
from compactor.model import PASSING_REASONS, Again, Skipped

SHOWN_QUARANTINED = 100


class QuarantineLine(msgspec.Struct, frozen=True):
    """One source that was left alone."""

    key: str
    reason: str
    detail: str


class RunTotals(msgspec.Struct):
    """The totals of one run's valid commits in one partition.

    ``records`` excludes records in server-side copies, which are never counted, and
    ``dead_letters``, which fit no row. All quarantined sources are counted, in total and by reason,
    and the first ``SHOWN_QUARANTINED`` are shown; excluded are those whose reason may pass, which
    every call finds again.
    """

    sources: int = 0
    source_bytes: int = 0
    outputs: int = 0
    output_bytes: int = 0
    records: int = 0
    copied: int = 0
    dead_letters: int = 0
    quarantined: int = 0
    quarantined_bytes: int = 0
    again: Skipped = NOTHING
    overwritten: Skipped = NOTHING
    lines: list[QuarantineLine] = msgspec.field(default_factory=list)
    left_alone: dict[str, LeftAlone] = msgspec.field(default_factory=dict)
    sizes: SizeCounts = msgspec.field(default_factory=SizeCounts)

    def count(self, commit: Commit, sign: int = 1) -> None:
        """Add a commit, or with a sign of -1 subtract one that was replaced."""
        self.sources += sign * len(commit.rows)
        self.source_bytes += sign * sum(row.source.size for row in commit.rows)
        again = _skipped(commit.again)
        self.again = self.again.plus(again) if sign > 0 else self.again.less(again)
        over = commit.overwritten
        self.overwritten = self.overwritten.plus(over) if sign > 0 else self.overwritten.less(over)
        lasting = [q for q in commit.quarantined if q.reason not in PASSING_REASONS]
        self.quarantined += sign * len(lasting)
        self.quarantined_bytes += sign * sum(q.source.size for q in lasting)
        left_alone.count(self.left_alone, lasting, sign)
        if sign > 0:
            lines = [QuarantineLine(q.source.key, q.reason, q.detail) for q in lasting]
            self.lines = (self.lines + lines)[:SHOWN_QUARANTINED]
        outputs = () if commit.output is None else (commit.output.size,)
        self.sizes.count((row.source.size for row in commit.rows), outputs, sign)
        if commit.output is not None:
            self.outputs += sign
            self.output_bytes += sign * commit.output.size
            self.records += sign * (commit.output.records or 0)
            self.copied += sign * commit.output.copied
        if commit.dead_letters is not None:
            self.dead_letters += sign * commit.dead_letters.records


def _skipped(again: Sequence[Again]) -> Skipped:
    examples = (again[0].source.key,) if again else ()
    return Skipped(len(again), sum(one.source.size for one in again), examples)


class _StillLeftAlone(Container[bytes]):
    """Identities left alone, except those that other settings may decide differently."""

    def __init__(self, every: Container[bytes], reopened: tuple[Container[bytes], ...]) -> None:
        self._every = every
        self._reopened = reopened

    def __contains__(self, identity: object) -> bool:
        return identity in self._every and not any(identity in one for one in self._reopened)


class LogState(msgspec.Struct):
    """What is known of a partition's log so far.

    Attributes:
        last: sequence of the newest entry seen; 0 for an empty log.
        checkpoint: sequence that the newest checkpoint covers, or 0.
        committed: identities of the sources that valid commits name.
        quarantined: identities of the sources left alone for good.
        passing: identities of the sources left alone for a reason that may pass, such as access
            denied: every run tries them again, and none records them a second time.
        undecided: the quarantined identities that depend on settings, by the settings that decided.
        contents: which contents of which keys were compacted.
        foreign: contents of entries by other writers that were read since the last plan.
        written_at: when the newest entry was written, by the store's clock; UNIX seconds. A
            committed source with a later time was written again after its commit. Infinite if there
            is no entry, or the time is not known.
        buckets: source buckets that entries name.
        unpublished: valid commits after the checkpoint whose output this run has neither completed
            nor seen, by sequence.
        commit_ids: of the checkpoint's last entry and of all later ones, by sequence.
        path: path of the partition.
        log_id: the identity that the entries name; empty before the first.
        outputs: digests of the outputs that entries name, including void ones.
        claimed: this run has verified the identity of the state.
        scheme_kept: this run has verified that the partition scheme is stored.
        scheme_number: number the scheme would be written under, if this run has looked that up.
        runs: totals of the latest runs by run id, the latest last. Part of the checkpoint, because
            one run may span several.
        replaced: sequences that entries after the checkpoint make void.
        unwitnessed: sequences of valid entries after the checkpoint whose witness this run has
            neither written nor compared; the value says whether one was listed.
        lost: sequences that are reused although the witness of a lost entry exists.
    """

    last: int = 0
    checkpoint: int = 0
    committed: Digests = msgspec.field(default_factory=Digests)
    quarantined: set[bytes] = msgspec.field(default_factory=set)
    passing: set[bytes] = msgspec.field(default_factory=set)
    undecided: dict[str, set[bytes]] = msgspec.field(default_factory=dict)
    contents: Contents = msgspec.field(default_factory=Contents)
    foreign: Contents = msgspec.field(default_factory=Contents)
    written_at: float = inf
    buckets: set[str] = msgspec.field(default_factory=set)
    unpublished: dict[int, Commit] = msgspec.field(default_factory=dict)
    commit_ids: dict[int, str] = msgspec.field(default_factory=dict)
    runs: dict[str, RunTotals] = msgspec.field(default_factory=dict)
    path: str = ""
    log_id: str = ""
    outputs: set[bytes] = msgspec.field(default_factory=set)
    claimed: bool = False
    scheme_kept: bool = False
    scheme_number: int | None = None
    replaced: set[int] = msgspec.field(default_factory=set)
    unwitnessed: dict[int, bool] = msgspec.field(default_factory=dict)
    lost: set[int] = msgspec.field(default_factory=set)

    def add(self, commit: Commit) -> None:
        """Apply the next entry of the log.

        Raises:
            IntegrityError: it was written for another log.
        """
        self.log_id = same_log(self.log_id, commit)
        self.last = commit.sequence
        self.commit_ids[commit.sequence] = commit.commit_id
        if commit.replaces is not None:
            self._take_back(self.unpublished.pop(commit.replaces, None))
            self.replaced.add(commit.replaces)
            self.unwitnessed.pop(commit.replaces, None)
        if commit.output is not None:
            self.unpublished[commit.sequence] = commit
            self.outputs.add(output_digest(commit.output.bucket, commit.output.key))
        totals = self.runs.pop(commit.run_id, None) or RunTotals()
        totals.count(commit)
        self.runs[commit.run_id] = totals
        compacted = manifest.identities(commit.rows)
        self.contents.add(commit.rows)
        if commit.rows:
            self.buckets.add(commit.source_bucket)
        compacted |= {one.source.identity for one in commit.again}
        self.committed.update(compacted)
        self.passing -= compacted
        for one in commit.quarantined:
            known = self.passing if one.reason in PASSING_REASONS else self.quarantined
            known.add(one.source.identity)
        self._note_undecided(commit)

    @property
    def published(self) -> Collection[int]:
        """Sequences of the commits whose output is readable, or that have no output."""
        return set(range(1, self.last + 1)).difference(self.unpublished)

    def mark_published(self, commit: Commit) -> None:
        """Record that the commit's output is readable; its rows are no longer needed."""
        self.unpublished.pop(commit.sequence, None)

    def left_alone(self, decided_by: str) -> Container[bytes]:
        """Return the identities of the sources that these settings leave alone again.

        Args:
            decided_by: the settings, named by :func:`compactor.outputs.detection.decided_by`.
        """
        others = tuple(one for name, one in self.undecided.items() if name != decided_by)
        return _StillLeftAlone(self.quarantined, others) if others else self.quarantined

    def _note_undecided(self, commit: Commit) -> None:
        found = {q.source.identity for q in commit.quarantined if q.reason in BY_SETTINGS}
        if not found or not commit.decided_by:
            return
        for one in self.undecided.values():
            one.difference_update(found)
        self.undecided.setdefault(commit.decided_by, set()).update(found)

    def totals(self, run_id: str) -> RunTotals:
        """Return the totals of what a run has committed here so far."""
        return self.runs.get(run_id, RunTotals())

    def _take_back(self, replaced: Commit | None) -> None:
        if replaced is not None:
            self.committed.difference_update(one.identity for one in replaced.sources)
            self.contents.discard(replaced.rows)
            if replaced.run_id in self.runs:
                self.runs[replaced.run_id].count(replaced, -1)
