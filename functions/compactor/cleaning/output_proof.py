"""Proves that an output is what its commit says, before any of its sources is deleted.

HEAD proves it by size and CRC32. The size alone proves nothing.
"""

from __future__ import annotations

import json
import zlib

from compactor.encoding.checksums import parts_crc32
from compactor.errors import IntegrityError, ObjectMissing
from compactor.log.columnar import DeadLetters
from compactor.log.entries import Output
from compactor.ports import ObjectHead, ObjectStore


def prove(output: Output, head: ObjectHead) -> None:
    """Check that a stored output is what its commit says.

    Args:
        output: the output, as committed.
        head: the latest response to HEAD of the output.

    Raises:
        IntegrityError: it is not, or nothing proves that it is.
    """
    prove_account(output)
    # No worker has read the bytes of a server-side copy: S3 returns the CRC32 of each part.
    crc32 = parts_crc32(output.parts) if output.crc32 is None else output.crc32
    _require(f"s3://{output.bucket}/{output.key}", head, output.size, crc32)


def prove_account(output: Output) -> None:
    """Check that every row was accounted for when the output was written.

    Raises:
        IntegrityError: it was not.
    """
    columnar = output.columnar
    if columnar is not None and (columnar.fault or output.records != columnar.rows_out):
        fault = columnar.fault or f"{output.records} records, {columnar.rows_out} rows"
        raise IntegrityError(f"s3://{output.bucket}/{output.key}: {fault}")


def dead_letter_sources(dead_letters: DeadLetters, store: ObjectStore) -> frozenset[str]:
    """Return the URIs of the sources that have dead-letter records.

    Raises:
        IntegrityError: the records are missing, or not what their commit says.
    """
    where = f"s3://{dead_letters.bucket}/{dead_letters.key}"
    try:
        body = store.get(dead_letters.bucket, dead_letters.key)
    except ObjectMissing:
        raise IntegrityError(f"{where}, the dead-letter records, is missing") from None
    if (len(body), zlib.crc32(body)) != (dead_letters.size, dead_letters.crc32):
        raise IntegrityError(f"{where}, the dead-letter records, is not what its commit says")
    return frozenset(json.loads(line)["source"] for line in body.splitlines())


def _require(where: str, head: ObjectHead, size: int, crc32: int | None) -> None:
    if head.size != size:
        raise IntegrityError(f"{where} has {head.size} bytes, its commit says {size}")
    if head.crc32 is None or crc32 is None:
        raise IntegrityError(f"{where}: nothing proves its bytes, for it has no CRC32 to compare")
    if head.crc32 != crc32:
        raise IntegrityError(f"{where} has CRC32 {head.crc32}, its commit says {crc32}")
