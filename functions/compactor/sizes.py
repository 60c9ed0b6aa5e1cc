"""Binary multiples of a byte, and bytes and counts as a person reads them."""

MIB = 1 << 20
GIB = 1 << 30
TIB = 1 << 40
#: A source that is larger is streamed by GETs of so many bytes each, and not held whole.
GET_BYTES = 8 * MIB


def human_bytes(count: float) -> str:
    """Bytes with a binary unit: 1,536 is 1.5 KiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:,.0f} B" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} TiB"


def plural(count: int, noun: str) -> str:
    """``1 object``, ``2 objects``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
