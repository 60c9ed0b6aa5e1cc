"""zstd frames made by hand (RFC 8878), to claim what no encoder would."""

from __future__ import annotations

_MAGIC = b"\x28\xb5\x2f\xfd"
RAW, RLE, COMPRESSED, RESERVED = range(4)


def block(kind: int, size: int, content: bytes, *, last: bool = False) -> bytes:
    """One block; ``size`` is what its header says."""
    return (last | kind << 1 | size << 3).to_bytes(3, "little") + content


def frame(
    content: bytes = b"fine\n", *, content_size: int | None = None, window_log: int = 20
) -> bytes:
    """A frame of one raw block with these bytes, whatever its header claims."""
    if content_size is None:
        header = bytes([0, window_log - 10 << 3])
    else:
        header = bytes([0b11100000]) + content_size.to_bytes(8, "little")
    return _MAGIC + header + block(RAW, len(content), content, last=True)
