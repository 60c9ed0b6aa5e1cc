"""The explain command: what is known about a key, as a source or as an output."""

from __future__ import annotations

from compactor.report.object_status import (
    Inquiry,
    ObjectStatus,
    output_keys,
    output_status,
    unknown,
)
from compactor.report.source_status import source_keys, source_status


def explain(inquiry: Inquiry, given: str) -> ObjectStatus:
    """Return what is known about one object. Read-only.

    Args:
        inquiry: the destination to look in.
        given: the object's URI, its key, or its key below the source or the destination.

    Raises:
        InvalidInput: no commit names it, and it is not in the source of any run.
        IntegrityError: an entry of the log is damaged.
    """
    for key in output_keys(inquiry, given):
        if (found := output_status(inquiry, key)) is not None:
            return found
    for bucket, key in source_keys(inquiry, given):
        if (found := source_status(inquiry, bucket, key)) is not None:
            return found
    raise unknown(given, inquiry)
