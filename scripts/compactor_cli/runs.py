"""What every way to run the workflow shares: names for runs, and how a failed one tells why."""

from __future__ import annotations

import json
import secrets
import time

PARTITIONS_LABEL, CLEAN_UPS_LABEL = "Partitions", "CleanUps"
"""The labels of the definition's two Distributed Maps, a part of their Map Runs' names."""


TABLES_LABEL = "Tables"
"""The label of the Distributed Map over tables, of the definition of maintenance."""


def new_run_id() -> str:
    """A name for a run that sorts by time (UTC, whole seconds) and meets no other."""
    return time.strftime("%Y%m%dT%H%M%SZ-", time.gmtime()) + secrets.token_hex(3)


def message_of(cause: str | None) -> str:
    """The message inside a cause, which for a failed Lambda function is a JSON document."""
    try:
        document = json.loads(cause or "")
    except ValueError:
        return cause or "no cause given"
    if isinstance(document, dict) and "errorMessage" in document:
        return str(document["errorMessage"])
    return str(cause)
