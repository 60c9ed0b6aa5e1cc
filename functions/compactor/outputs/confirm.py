"""Confirm: what was just published is what was hashed, where the store did not see to it.

S3 itself refuses an output whose bytes do not have the CRC32 that came with its completion. Two
cases are left: a store that does not compare it, and parts that the store copied, of which no
CRC32 is ours.
"""

from __future__ import annotations

from compactor.errors import IntegrityError
from compactor.log.entries import Commit
from compactor.outputs import verify
from compactor.ports import ObjectStore


def confirm(commit: Commit, store: ObjectStore) -> None:
    """Look at a published output once more where that is needed; safe to run again.

    Raises:
        IntegrityError: it is not what was hashed, or the store keeps a CRC32 of it that is not that
            of its bytes. Its sources stay until an operator has seen to it.
    """
    output = commit.output
    if output is None:
        return
    if output.crc32 is not None:
        if not store.traits.refuses_wrong_crc32:
            verify.check_bytes(output.bucket, output.key, output.size, output.crc32, store)
        return
    head = store.head(output.bucket, output.key)
    if head is None:
        raise IntegrityError(f"s3://{output.bucket}/{output.key} is gone, just published")
    verify.check_told_crc32(output, head, store)
