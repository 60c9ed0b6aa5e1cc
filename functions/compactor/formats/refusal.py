"""The error for a source that is left alone: what was seen, its first bytes, the setting."""

from __future__ import annotations

from compactor.errors import UnreadableSource
from compactor.escaping import shown_bytes
from compactor.model import QuarantineReason

#: For sources that are lines, as far as is known.
DECLARE = "formats decides: declare its format there, if its lines are records"
_SETTINGS = {
    QuarantineReason.UNKNOWN_FORMAT: DECLARE,
    QuarantineReason.ENCODING: 'formats decides: encoding = "single_byte", if it is text',
}


def refused(
    reason: QuarantineReason, seen: str, head: bytes, setting: str | None = None
) -> UnreadableSource:
    """Return the error for a source whose format is not certain.

    Args:
        reason: the reason it is counted under.
        seen: what the bytes show, for the operator.
        head: the first bytes of the source.
        setting: the setting that decides; by default that of the reason, if it has one.
    """
    way = _SETTINGS.get(reason, "") if setting is None else setting
    parts = (seen, f"it starts with {shown_bytes(head)}", way)
    return UnreadableSource(reason, "; ".join(part for part in parts if part))
