"""Gzip members that no compressor writes."""

from __future__ import annotations

import zlib

_HEADER = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"


def member_of_lines(line: bytes, count: int, *, distance_bits: int) -> bytes:
    """Return a member of equal lines in one block with a single, unused distance code.

    RFC 1951 allows a single code of 1 bit. A longer one leaves combinations without a meaning: zlib
    rejects the block, and so do gzip(1), Java and most others; isal does not.

    Args:
        line: seven different bytes.
        count: the number of lines.
        distance_bits: the length of that code.
    """
    symbols = sorted({*line, 256})
    lengths = [3 if symbol in symbols else 0 for symbol in range(257)] + [distance_bits]
    codes = {symbol: f"{number:03b}" for number, symbol in enumerate(symbols)}
    # The last block, with dynamic codes: 257 and 1 of them, with lengths of 4 bits each.
    bits = "1" + "01" + "00000" + "00000" + "1111" + 3 * "000" + 16 * "001"
    bits += "".join(f"{length:04b}" for length in lengths)
    bits += count * "".join(codes[byte] for byte in line) + codes[256]
    block = int(bits[::-1], 2).to_bytes(-(-len(bits) // 8), "little")
    content = line * count
    trailer = zlib.crc32(content).to_bytes(4, "little") + len(content).to_bytes(4, "little")
    return _HEADER + block + trailer
