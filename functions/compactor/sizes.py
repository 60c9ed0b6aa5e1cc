"""Binary multiples of a byte, and human-readable byte sizes, durations and counts."""

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


def human_seconds(seconds: float) -> str:
    """Return a duration: 0.04 s, 1.4 s, 12 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 10:
        return f"{seconds:.2f} s" if seconds < 1 else f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3_600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3_600:,} h {whole % 3_600 // 60} min"


def plural(count: int, noun: str) -> str:
    """Return a count with its noun: ``1 object``, ``2 objects``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
