"""The verb ``explain``: what is known of a key, whether it is a source or an output."""

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
    """What is known of one object; reads only.

    Args:
        inquiry: whose object it is.
        given: its URI, its key, or its key below the source or the destination.

    Raises:
        InvalidInput: no commit names it, and no source of a run has it.
        IntegrityError: an entry of the log is damaged.
    """
    for key in output_keys(inquiry, given):
        if (found := output_status(inquiry, key)) is not None:
            return found
    for bucket, key in source_keys(inquiry, given):
        if (found := source_status(inquiry, bucket, key)) is not None:
            return found
    raise unknown(given, inquiry)
