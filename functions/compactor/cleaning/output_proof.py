"""Proves that an output is what its commit says, before any of its sources is deleted.

HEAD is enough if it proves the bytes: by their CRC32, or by the ETag that follows from the
committed parts. Otherwise the output is read. Its size alone proves nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from compactor.errors import IntegrityError, ObjectArchived
from compactor.log.columnar import Columnar, Rejects
from compactor.log.entries import Commit, Output
from compactor.model import StoredPart, is_md5
from compactor.outputs import slices, verify
from compactor.ports import ObjectHead, ObjectStore


def prove(
    commit: Commit, output: Output, head: ObjectHead, store: ObjectStore, proven: str = ""
) -> None:
    """Check that the output holds what its commit says.

    Args:
        commit: the commit that names the output.
        output: the output.
        head: the latest response to HEAD of the output.
        store: the store that holds the output.
        proven: ETag of the output if this was proven a moment ago; empty otherwise.

    Raises:
        IntegrityError: it does not, or nothing proves that it does.
    """
    try:
        _require(commit, output, head, store, proven)
    except ObjectArchived as error:
        raise IntegrityError(
            f"s3://{output.bucket}/{output.key} lies in an archive tier ({head.storage_class}), and"
            " HEAD alone does not prove what is in it; restore it for a while, and the next"
            f" clean-up reads it: {error}"
        ) from error


def prove_account(output: Output, store: ObjectStore) -> None:
    """Check that every row was accounted for when an output that is now gone was written.

    Raises:
        IntegrityError: it was not, or its rejects have changed.
    """
    if output.columnar is not None:
        _require_rows(f"s3://{output.bucket}/{output.key}", output, output.columnar, store)


def _require(
    commit: Commit, output: Output, head: ObjectHead, store: ObjectStore, proven: str
) -> None:
    where = f"s3://{output.bucket}/{output.key}"
    if output.columnar is not None:
        _require_rows(where, output, output.columnar, store)
    if head.size != output.size:
        raise IntegrityError(f"{where} has {head.size} bytes, its commit says {output.size}")
    if head.crc32 is not None and output.crc32 is not None:
        if head.crc32 != output.crc32:
            raise IntegrityError(f"{where} has CRC32 {head.crc32}, its commit says {output.crc32}")
    elif head.etag != proven:
        verify.check_stored_crc32(output, head, store)
        _prove_by_parts(commit, output, head, store)


def _prove_by_parts(commit: Commit, output: Output, head: ObjectHead, store: ObjectStore) -> None:
    """Prove the output by the ETag that follows from its parts, or else by reading it."""
    if head.etag == multipart_etag(output.parts):
        return
    where = f"s3://{output.bucket}/{output.key}"
    if output.crc32 is None:
        _require_known_copies(where, commit)
    try:
        verify.check_commit(commit, store)
    except IntegrityError as error:
        raise IntegrityError(f"{where} does not hold what its commit says: {error}") from error


def multipart_etag(parts: Sequence[StoredPart]) -> str:
    """Return the ETag of an object completed from these parts; empty if it cannot be computed.

    S3 returns the MD5 of the parts' MD5 sums, and their number. If a part's ETag is not an MD5 sum,
    as with SSE-KMS, the computed value would match no object.
    """
    if not parts or not all(is_md5(part.etag) for part in parts):
        return ""
    # Only compared with S3's value; not a defence against an attacker.
    sums = b"".join(bytes.fromhex(part.etag) for part in parts)
    return f"{hashlib.md5(sums, usedforsecurity=False).hexdigest()}-{len(parts)}"


def _require_known_copies(where: str, commit: Commit) -> None:
    copied = [row.source.key for row in commit.rows if slices.is_unproven(row, commit)]
    if copied:
        raise IntegrityError(
            f"{where}: nothing stored proves what S3 copied from {copied[0]}"
            f" ({len(copied)} such); compare them with compactor verify --sources, then delete"
            " them by hand"
        )


def _require_rows(where: str, output: Output, columnar: Columnar, store: ObjectStore) -> None:
    """Check that every row was accounted for, because the manifest does not hold the bytes."""
    if columnar.fault or output.records != columnar.rows_out:
        fault = columnar.fault or f"{output.records} records, {columnar.rows_out} rows"
        raise IntegrityError(f"{where}: {fault}")
    if columnar.rejects is not None:
        _require_rejects(where, columnar.rejects, store)


def _require_rejects(where: str, rejects: Rejects, store: ObjectStore) -> None:
    which = f"s3://{rejects.bucket}/{rejects.key}, the rejects of {where},"
    head = store.head(rejects.bucket, rejects.key)
    if head is None:
        raise IntegrityError(f"{which} is missing")
    if head.size != rejects.size:
        raise IntegrityError(f"{which} is {head.size} bytes long, not {rejects.size}")
    if head.crc32 is None:
        # For objects stored without a checksum, S3 adds its own: CRC64NVME.
        verify.check_bytes(rejects.bucket, rejects.key, rejects.size, rejects.crc32, store)
    elif head.crc32 != rejects.crc32:
        raise IntegrityError(f"{which} has CRC32 {head.crc32}, not {rejects.crc32}")
