"""What is said of a source that is left alone: what was seen, its first bytes, what decides it."""

from __future__ import annotations

from compactor.errors import UnreadableSource
from compactor.escaping import shown_bytes
from compactor.model import QuarantineReason

_REMEDIES = {
    QuarantineReason.UNKNOWN_FORMAT: 'set format: "text" to join such sources line by line',
    QuarantineReason.BINARY: "",
    QuarantineReason.ENCODING: 'set encoding: "single_byte"',
    QuarantineReason.OPEN_END: "",
}


def refused(
    reason: QuarantineReason, seen: str, head: bytes, remedy: str | None = None
) -> UnreadableSource:
    """The error for a source that is not certain.

    Args:
        reason: under which it is counted.
        seen: what the bytes show, for a person.
        head: its first bytes.
        remedy: the setting that would decide it; by default that of the reason, if it has one.
    """
    way = _REMEDIES.get(reason, "") if remedy is None else remedy
    parts = (seen, f"it starts with {shown_bytes(head)}", way)
    return UnreadableSource(reason, "; ".join(part for part in parts if part))
