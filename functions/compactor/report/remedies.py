"""What a report says of whatever was not compacted, or failed: why, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from compactor.model import QuarantineReason, SkipReason

_NOTHING = "nothing"

#: Of each reason why no run looks into an object: what it means, and what to do.
SKIPPED: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        SkipReason.COMMITTED: ("an earlier run compacted it", _NOTHING),
        SkipReason.TOO_YOUNG: (
            "younger than settle_seconds",
            "a later run takes it; or a smaller settle_seconds",
        ),
        SkipReason.OPEN_PARTITION: (
            "its partition got objects within open_partition_seconds",
            "a later run takes it; or a smaller open_partition_seconds",
        ),
        SkipReason.TOO_FEW: (
            "fewer than min_objects in the partition",
            "a later run takes it when there are more; or a smaller min_objects",
        ),
        SkipReason.EMPTY: ("it has no byte", _NOTHING),
        SkipReason.DIRECTORY_MARKER: ("a key that ends in / without a byte", _NOTHING),
        SkipReason.NOT_INCLUDED: ("include does not match it", "mend include if it should"),
        SkipReason.EXCLUDED: ("exclude matches it", "mend exclude if it should not"),
        SkipReason.RULE: ("a rule of policies leaves it", "mend the rule if it should not"),
        SkipReason.DOES_NOT_PAY: (
            "its compaction would not pay back within pays_back_within_days",
            "a larger pays_back_within_days, or none",
        ),
        SkipReason.QUIET: ("a rule of policies has quiet hours now", "a later run takes it"),
        SkipReason.ARCHIVED: (
            "its storage class cannot be read",
            "restore it in S3 if it should be compacted",
        ),
        SkipReason.OWN_STATE: ("written by this program", _NOTHING),
        SkipReason.HIDDEN: ("its name begins with _ or ., so no query engine reads it", _NOTHING),
        SkipReason.CLOUDTRAIL_DIGEST: ("a digest of CloudTrail, never compacted", _NOTHING),
        SkipReason.QUARANTINED: (
            "an earlier run left it alone for what it holds",
            "that run's report has the reason; retry_quarantined tries it again",
        ),
        SkipReason.UNPARTITIONED: (
            "it lies above the level of the partitions",
            "a smaller depth, or another date_format, if it should be compacted",
        ),
        SkipReason.DEEPER_LEVEL: (
            "it lies in a named level below its partition",
            "a larger depth, if it should be compacted",
        ),
        SkipReason.AGAIN: ("its content was delivered again, and is compacted already", _NOTHING),
        SkipReason.GONE: ("gone since the inventory was made, or changed", "a newer inventory"),
        SkipReason.GONE_EVENT: ("gone since its event, or changed", _NOTHING),
    }
)

#: Objects that a later run takes as they are.
WAITING = frozenset(
    {SkipReason.TOO_YOUNG, SkipReason.OPEN_PARTITION, SkipReason.TOO_FEW, SkipReason.QUIET}
)

#: What to do about a source that was left alone, where no setting decides it.
LEFT_ALONE: Mapping[str, str] = MappingProxyType(
    {
        QuarantineReason.CORRUPT: "write it anew from where it came",
        QuarantineReason.TRUNCATED: "write it anew from where it came",
        QuarantineReason.OPEN_END: "complete it",
        QuarantineReason.OPEN_QUOTE: "complete it",
        QuarantineReason.ARCHIVED: "restore it in S3; each run tries again",
        QuarantineReason.ACCESS_DENIED: "let the role read it; each run tries again",
        QuarantineReason.ENCRYPTED: "let the role use its key; each run tries again",
    }
)

_AGAIN = "Start again with the same input: what was committed stands."
_CONTRADICTION = (
    "Let no clean-up run before you know why (clean_up=keep). compactor verify SOURCE DEST names"
    " what is wrong; a commit log that is gone comes back by compactor adopt."
)
#: By the class name of an error. The runbook's tables say more of each.
FAILURES: Mapping[str, str] = MappingProxyType(
    {
        "TransientStoreError": f"S3 did not answer, again and again. {_AGAIN}",
        "States.Timeout": f"The work took too long. {_AGAIN}",
        "WorkerLost": "The worker died: compactor logs shows its last words. More"
        " worker_memory_mb, or less memory_budget_bytes; then start again.",
        "SourceChanged": "Sources changed each time they were planned. Look for a producer that"
        f" overwrites. {_AGAIN}",
        "CommitConflict": f"Another run committed meanwhile. Look for two schedules. {_AGAIN}",
        "NothingReadable": "No source of the partition may be read: mend the role, the bucket"
        " policy or the KMS key that the cause names.",
        "InvalidInput": "A setting does not fit what is there: the cause names it.",
        "ObjectArchived": "An output or the commit log lies in an archive tier: restore it, and"
        " keep lifecycle rules away from the state prefix.",
        "IntegrityError": _CONTRADICTION,
        "RecordsDiffer": _CONTRADICTION,
        "WrongCopies": _CONTRADICTION,
        "NotMerged": f"Outputs are committed, and not all are merged into the table. {_AGAIN}",
    }
)


def failure_remedy(error: str) -> str:
    """What to do about an error, by its class name."""
    return FAILURES.get(error, f"Mend what the cause names. {_AGAIN}")
