"""Shared by all ways to run the workflow: Map labels, and causes of failure."""

from __future__ import annotations

import json

PARTITIONS_LABEL, CLEAN_UPS_LABEL = "Partitions", "CleanUps"
"""The labels of the definition's two Distributed Maps, a part of their Map Runs' names."""


def message_of(cause: str | None) -> str:
    """Return the message in a cause, which is a JSON document for a failed Lambda function."""
    try:
        document = json.loads(cause or "")
    except ValueError:
        return cause or "no cause given"
    if isinstance(document, dict) and "errorMessage" in document:
        return str(document["errorMessage"])
    return str(cause)
