"""Proves that an output is what its commit says, before any of its sources is deleted.

HEAD proves it by size and CRC32. The size alone proves nothing.
"""

from __future__ import annotations

import json
import zlib

from compactor.documents import require_object
from compactor.encoding.checksums import parts_crc32
from compactor.log.entries import DeadLetters, Output, require_proven
from compactor.ports import ObjectHead, ObjectStore


def prove(output: Output, head: ObjectHead) -> None:
    """Check that a stored output is what its commit says.

    Args:
        output: the output, as committed.
        head: the latest response to HEAD of the output.

    Raises:
        IntegrityError: it is not, or nothing proves that it is.
    """
    output.require_accounted()
    # No worker has read the bytes of a server-side copy: S3 returns the CRC32 of each part.
    crc32 = parts_crc32(output.parts) if output.crc32 is None else output.crc32
    require_proven(output.uri, (head.size, head.crc32), (output.size, crc32))


def dead_letter_sources(dead_letters: DeadLetters, store: ObjectStore) -> frozenset[str]:
    """Return the URIs of the sources that have dead-letter records.

    Raises:
        IntegrityError: the records are missing, or not what their commit says.
    """
    body = require_object(store, (dead_letters.bucket, dead_letters.key))
    where = f"s3://{dead_letters.bucket}/{dead_letters.key}, the dead-letter records,"
    require_proven(where, (len(body), zlib.crc32(body)), (dead_letters.size, dead_letters.crc32))
    return frozenset(json.loads(line)["source"] for line in body.splitlines())
