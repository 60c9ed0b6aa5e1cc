"""What every way to run the workflow shares: names for runs, and why a failed one failed."""

from __future__ import annotations

import json
import secrets
from datetime import UTC, datetime

PARTITIONS_LABEL, CLEAN_UPS_LABEL = "Partitions", "CleanUps"
"""The labels of the definition's two Distributed Maps, a part of their Map Runs' names."""


TABLES_LABEL = "Tables"
"""The label of the Distributed Map over tables, of the definition of maintenance."""


def new_run_id() -> str:
    """A unique name for a run; names sort by the time they were made (UTC, milliseconds)."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return f"{now[:-6].replace('-', '').replace(':', '')}Z-{secrets.token_hex(3)}"


def message_of(cause: str | None) -> str:
    """The message inside a cause, which for a failed Lambda function is a JSON document."""
    try:
        document = json.loads(cause or "")
    except ValueError:
        return cause or "no cause given"
    if isinstance(document, dict) and "errorMessage" in document:
        return str(document["errorMessage"])
    return str(cause)
