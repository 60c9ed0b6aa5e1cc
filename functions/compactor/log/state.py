"""The state of a partition's commit log, as a pure fold over its entries.

The log is the sequence of objects ``commits/<seq>.json.gz``, each written once with
``If-None-Match: *``, so every run sees the same order of commits. A commit may replace an earlier
one whose output was lost before it was published; the replaced commit is then void. A checkpoint
sums up all commits through one sequence number, all of them published.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping

import msgspec

from compactor.log import manifest
from compactor.log.counts import BY_SETTINGS, LeftAlone, SizeCounts, count_left_alone
from compactor.log.digests import Digests
from compactor.log.entries import Commit, output_digest, same_log
from compactor.model import PASSING_REASONS

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
    lines: list[QuarantineLine] = msgspec.field(default_factory=list)
    left_alone: dict[str, LeftAlone] = msgspec.field(default_factory=dict)
    sizes: SizeCounts = msgspec.field(default_factory=SizeCounts)
    covered: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)

    def count(self, commit: Commit, sign: int = 1) -> None:
        """Add a commit, or with a sign of -1 subtract one that was replaced."""
        self.sources += sign * len(commit.rows)
        self.source_bytes += sign * sum(row.source.size for row in commit.rows)
        lasting = [q for q in commit.quarantined if q.reason not in PASSING_REASONS]
        self.quarantined += sign * len(lasting)
        self.quarantined_bytes += sign * sum(q.source.size for q in lasting)
        count_left_alone(self.left_alone, lasting, sign)
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
        for number, objects, size in commit.covered:
            objects_before, size_before = self.covered.get(str(number), (0, 0))
            self.covered[str(number)] = (objects_before + sign * objects, size_before + sign * size)
        if commit.dead_letters is not None:
            self.dead_letters += sign * commit.dead_letters.records


class _DecidedBy(Container[bytes]):
    """Quarantined identities, except those that other settings may decide differently."""

    def __init__(self, quarantined: Mapping[bytes, str], decided_by: str) -> None:
        self._quarantined = quarantined
        self._lasting = frozenset({"", decided_by})

    def __contains__(self, identity: object) -> bool:
        return isinstance(identity, bytes) and self._quarantined.get(identity) in self._lasting


class LogState(msgspec.Struct):
    """What is known of a partition's log so far.

    Attributes:
        last: sequence of the newest entry seen; 0 for an empty log.
        checkpoint: sequence that the newest checkpoint covers, or 0.
        committed: identities of the sources that valid commits name.
        quarantined: identities of the sources left alone, each with the settings that decided it
            (see :attr:`Commit.decided_by`); empty if no settings decide otherwise.
        passing: identities of the sources left alone for a reason that may pass, such as access
            denied: every run tries them again, and none records them a second time.
        unpublished: valid commits after the checkpoint whose output this run has neither completed
            nor seen, by sequence.
        log_id: the identity that the entries name; empty before the first.
        outputs: digests of the outputs that entries name, including void ones.
        runs: totals of the latest runs by run id, the latest last. Part of the checkpoint, because
            one run may span several.
        replaced: sequences that entries after the checkpoint make void.
    """

    last: int = 0
    checkpoint: int = 0
    committed: Digests = msgspec.field(default_factory=Digests)
    quarantined: dict[bytes, str] = msgspec.field(default_factory=dict)
    passing: set[bytes] = msgspec.field(default_factory=set)
    unpublished: dict[int, Commit] = msgspec.field(default_factory=dict)
    runs: dict[str, RunTotals] = msgspec.field(default_factory=dict)
    log_id: str = ""
    outputs: set[bytes] = msgspec.field(default_factory=set)
    replaced: set[int] = msgspec.field(default_factory=set)

    def add(self, commit: Commit) -> None:
        """Apply the next entry of the log.

        Raises:
            IntegrityError: it was written for another log.
        """
        self.log_id = same_log(self.log_id, commit)
        self.last = commit.sequence
        if commit.replaces is not None:
            self._take_back(self.unpublished.pop(commit.replaces, None))
            self.replaced.add(commit.replaces)
        if commit.output is not None:
            self.unpublished[commit.sequence] = commit
            self.outputs.add(output_digest(commit.output.bucket, commit.output.key))
        totals = self.runs.pop(commit.run_id, None) or RunTotals()
        totals.count(commit)
        self.runs[commit.run_id] = totals
        compacted = manifest.identities(commit.rows)
        self.committed.update(compacted)
        self.passing -= compacted
        for quarantined in commit.quarantined:
            if quarantined.reason in PASSING_REASONS:
                self.passing.add(quarantined.source.identity)
            else:
                decided_by = commit.decided_by if quarantined.reason in BY_SETTINGS else ""
                self.quarantined[quarantined.source.identity] = decided_by

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
        return _DecidedBy(self.quarantined, decided_by)

    def totals(self, run_id: str) -> RunTotals:
        """Return the totals of what a run has committed here so far."""
        return self.runs.get(run_id, RunTotals())

    def _take_back(self, replaced: Commit | None) -> None:
        if replaced is not None:
            self.committed.difference_update(source.identity for source in replaced.sources)
            if replaced.run_id in self.runs:
                self.runs[replaced.run_id].count(replaced, -1)
