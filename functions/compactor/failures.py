"""Why a task of the state machine failed, as recorded by Step Functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

# Fields for the reason of a failure in EMR (cluster, step) and EMR Serverless (job run).
_REASONS = frozenset({"Reason", "Message", "StateDetails", "errorMessage"})


def failure_text(failure: Mapping[str, Any] | None) -> str:
    """Return a failure of Step Functions (``Error``, ``Cause``) in one line; empty for no failure.

    The cause of an EMR task is the description of its cluster, step or job run. Only the reasons
    in it are kept.
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
    """Yield every text that EMR gives as a reason, at any depth of the description."""
    if not isinstance(document, Mapping):
        return
    for name, value in document.items():
        if name in _REASONS and isinstance(value, str):
            yield value
        yield from _reasons(value)


def first_line(error: Exception) -> str:
    """Return an error's message in one line; for a Java error, without the stack trace."""
    java = getattr(error, "java_exception", None)
    text = str(error if java is None else java.getMessage())
    return next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
