"""CRC32 of a whole object from those of its parts, without reading the bytes.

S3 takes CRC32, CRC32C and CRC64NVME of a whole multipart object, but SHA-256 and MD5 only of parts.
"""

from __future__ import annotations

from collections.abc import Sequence

from isal import isal_zlib

from compactor.model import StoredPart


def parts_crc32(parts: Sequence[StoredPart]) -> int | None:
    """Return the CRC32 of the concatenated parts; None if that of one is unknown."""
    whole = 0
    for part in parts:
        if part.crc32 is None:
            return None
        whole = isal_zlib.crc32_combine(whole, part.crc32, part.size)
    return whole
