"""Binary multiples of a byte, and human-readable byte sizes and counts."""

MIB = 1 << 20
GIB = 1 << 30
TIB = 1 << 40
#: Sources larger than this are streamed by GETs of this size each, and not held in memory.
GET_BYTES = 8 * MIB


def human_bytes(count: float) -> str:
    """Return bytes with a binary unit: 1,536 is 1.5 KiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:,.0f} B" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} TiB"


def plural(count: int, noun: str) -> str:
    """Return a count with its noun: ``1 object``, ``2 objects``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
