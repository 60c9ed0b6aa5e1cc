"""Proves that an output is what its commit says, before any of its sources is deleted.

HEAD proves it by size and CRC32. The size alone proves nothing.
"""

from __future__ import annotations

from compactor.encoding.checksums import parts_crc32
from compactor.errors import IntegrityError
from compactor.log.columnar import Columnar
from compactor.log.entries import Output
from compactor.ports import ObjectHead, ObjectStore


def prove(output: Output, head: ObjectHead, store: ObjectStore) -> None:
    """Check that a stored output, and its rejects, are what its commit says.

    Args:
        output: the output, as committed.
        head: the latest response to HEAD of the output.
        store: the store that holds the output.

    Raises:
        IntegrityError: it is not, or nothing proves that it is.
    """
    if output.columnar is not None:
        prove_account(output, store)
    # No worker has read the bytes of a server-side copy: S3 returns the CRC32 of each part.
    crc32 = parts_crc32(output.parts) if output.crc32 is None else output.crc32
    _require(f"s3://{output.bucket}/{output.key}", head, output.size, crc32)


def prove_account(output: Output, store: ObjectStore) -> None:
    """Check that every row was accounted for when the output was written.

    Raises:
        IntegrityError: it was not, or its rejects have changed.
    """
    columnar = output.columnar
    if columnar is None:
        return
    where = f"s3://{output.bucket}/{output.key}"
    _require_rows(where, output, columnar)
    rejects = columnar.rejects
    if rejects is not None:
        which = f"s3://{rejects.bucket}/{rejects.key}, the rejects of {where}"
        head = store.head(rejects.bucket, rejects.key)
        if head is None:
            raise IntegrityError(f"{which}, is missing")
        _require(which, head, rejects.size, rejects.crc32)


def _require_rows(where: str, output: Output, columnar: Columnar) -> None:
    if columnar.fault or output.records != columnar.rows_out:
        fault = columnar.fault or f"{output.records} records, {columnar.rows_out} rows"
        raise IntegrityError(f"{where}: {fault}")


def _require(where: str, head: ObjectHead, size: int, crc32: int | None) -> None:
    if head.size != size:
        raise IntegrityError(f"{where} has {head.size} bytes, its commit says {size}")
    if head.crc32 is None or crc32 is None:
        raise IntegrityError(f"{where}: nothing proves its bytes, for it has no CRC32 to compare")
    if head.crc32 != crc32:
        raise IntegrityError(f"{where} has CRC32 {head.crc32}, its commit says {crc32}")
