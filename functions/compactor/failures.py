"""Why a task of the state machine failed, as Step Functions keeps it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

# Where EMR (cluster, step) and EMR Serverless (job run) put the reason of a failure.
_REASONS = frozenset({"Reason", "Message", "StateDetails", "errorMessage"})


def failure_text(failure: Mapping[str, Any] | None) -> str:
    """A failure as Step Functions keeps it (``Error``, ``Cause``) in one line; empty for none.

    The cause of an EMR task is the description of its cluster, step or job run; only what it
    says of the failure is kept.
    """
    given = failure or {}
    cause = str(given.get("Cause") or "")
    try:
        document = msgspec.json.decode(cause)
    except msgspec.DecodeError:
        document = None
    reasons = dict.fromkeys(_reasons(document))
    texts = [str(given.get("Error") or ""), ", ".join(reasons) or cause]
    return ": ".join(" ".join(text.split()) for text in texts if text)


def _reasons(document: object) -> Iterator[str]:
    """Every text that EMR gives as a reason, wherever in the description it stands."""
    if not isinstance(document, Mapping):
        return
    for name, value in document.items():
        if name in _REASONS and isinstance(value, str):
            yield value
        yield from _reasons(value)
