"""What a report recommends for sources left because of their content, and for failures."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from compactor.model import QuarantineReason

#: What to do about a source that was left alone, if no setting affects it.
LEFT_ALONE: Mapping[str, str] = MappingProxyType(
    {
        QuarantineReason.CORRUPT: "write it again from where it came",
        QuarantineReason.TRUNCATED: "write it again from where it came",
        QuarantineReason.BOMB: "write it in objects that decompress to less than 16 MiB",
        QuarantineReason.TOO_LARGE: "write it in smaller objects",
        QuarantineReason.OPEN_END: "complete it",
        QuarantineReason.OPEN_QUOTE: "complete it",
        QuarantineReason.ARCHIVED: "restore it in S3; each run tries again",
        QuarantineReason.ACCESS_DENIED: "let the role read it; each run tries again",
        QuarantineReason.CLIENT_ENCRYPTED: "decrypt it first",
        QuarantineReason.ENCRYPTED: "let the role use its key; each run tries again",
    }
)

_AGAIN = "Start again with the same input: what was committed stands."
_CONTRADICTION = (
    "Let no clean-up run before you know why (clean_up=keep). compactor verify SOURCE DEST names"
    " what is wrong; a commit log that is gone comes back by compactor adopt."
)
#: By the class name of an error. The runbook's tables have details.
FAILURES: Mapping[str, str] = MappingProxyType(
    {
        "TransientStoreError": f"S3 did not answer, again and again. {_AGAIN}",
        "States.Timeout": f"The work took too long. {_AGAIN}",
        "WorkerLost": "The worker died; its function's log has its last lines. Raise"
        " worker_memory_mb; then start again.",
        "SourceChanged": "Sources changed each time they were planned. Look for a producer that"
        f" overwrites. {_AGAIN}",
        "CommitConflict": f"Another run committed meanwhile. Look for two schedules. {_AGAIN}",
        "NothingReadable": "No source of the partition may be read: fix the role, the bucket"
        " policy or the KMS key that the cause names.",
        "InvalidInput": "A setting does not fit what is there: the cause names it.",
        "ObjectArchived": "An output or the commit log lies in an archive tier: restore it, and"
        " keep lifecycle rules away from the state prefix.",
        "IntegrityError": _CONTRADICTION,
        "NotMerged": f"Outputs are committed, and not all are merged into the table. {_AGAIN}",
    }
)


def failure_remedy(error: str) -> str:
    """Return what to do about an error, by its class name."""
    return FAILURES.get(error, f"Fix what the cause names. {_AGAIN}")
