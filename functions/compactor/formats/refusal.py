"""The error for a source that is left alone: what was seen, its first bytes, the remedy."""

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
    """Return the error for a source whose format is not certain.

    Args:
        reason: the reason it is counted under.
        seen: what the bytes show, for the operator.
        head: the first bytes of the source.
        remedy: the setting that would decide; by default that of the reason, if it has one.
    """
    way = _REMEDIES.get(reason, "") if remedy is None else remedy
    parts = (seen, f"it starts with {shown_bytes(head)}", way)
    return UnreadableSource(reason, "; ".join(part for part in parts if part))
