"""Large sources that S3 copies whole, each into an output of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from compactor.destination import Destination
from compactor.encoding.encoders import encoder
from compactor.encoding.output_encoding import packing_class
from compactor.errors import UnreadableSource
from compactor.limits import WorkerLimits
from compactor.log.entries import Output
from compactor.log.manifest import ManifestRow
from compactor.model import (
    Compression,
    ObjectGroup,
    Quarantined,
    QuarantineReason,
    SourceObject,
    StoredPart,
)
from compactor.outputs.group_reading import require_not_encrypted
from compactor.outputs.output_writer import OutputWriter, Parts
from compactor.outputs.pending import PendingOutput
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings

# Copies hold no bytes in memory.
_COPIES_IN_FLIGHT = 16
# Only the extension is kept, as a whole name may be too long for the key of an output.
_EXTENSION = re.compile(r"(?:\.[A-Za-z0-9]{1,16}){1,2}\Z")


def copy_source(
    group: ObjectGroup, settings: Settings, store: ObjectStore, destination: Destination
) -> PendingOutput:
    """Copy the one source of a group as it is.

    S3 copies it, or its bytes pass through this worker if the store's copies are not safe.
    """
    (source,) = group.sources
    # Only the headers of a large source are requested; its body is not read.
    (body,) = store.read_sources(group.sources)
    try:
        if body.error is not None:
            raise body.error
        require_not_encrypted(body.attributes)
        output = _store(group, settings.limits, store, destination)
    except UnreadableSource as error:
        quarantined = Quarantined(source, QuarantineReason(error.reason), error.detail)
        return PendingOutput(group=group, output=None, rows=(), quarantined=(quarantined,))
    row = ManifestRow(source, 0, source.size, None, None, None, body.attributes)
    return PendingOutput(group=group, output=output, rows=(row,))


def _store(
    group: ObjectGroup, limits: WorkerLimits, store: ObjectStore, destination: Destination
) -> Output:
    (source,) = group.sources
    extension = _EXTENSION.search(source.key.rsplit("/", 1)[-1], 1)
    bucket = destination.bucket
    key = destination.key(group, extension[0] if extension else "")
    metadata = partial(destination.metadata, group)
    crc32: int | None = None
    if store.traits.copies:

        def begin() -> str:
            return store.create_upload(bucket, key, metadata=metadata())

        copies = Parts(store, bucket, key, begin, in_flight=_COPIES_IN_FLIGHT)
        upload_id, parts = _copy(source, copies, limits)
    else:
        writer = OutputWriter(
            store, bucket, key, encoder(Compression.NONE), metadata=metadata, limits=limits
        )
        upload_id, parts = _pass_through(source, writer, store, limits)
        crc32 = writer.crc32
    return Output(
        bucket=bucket,
        key=key,
        upload_id=upload_id,
        parts=parts,
        size=source.size,
        crc32=crc32,
        plain_bytes=None,
        records=None,
        format=None,
        compression=packing_class(source.key).compression,
        copied=True,
    )


def _copy(
    source: SourceObject, parts: Parts, limits: WorkerLimits
) -> tuple[str, tuple[StoredPart, ...]]:
    try:
        for start, length in copy_ranges(source.size, limits):
            parts.copy(source, start, length)
        return parts.finish()
    except BaseException:
        parts.abort()
        raise


def copy_ranges(size: int, limits: WorkerLimits) -> Iterator[tuple[int, int]]:
    """Yield (start, length) of the parts that copy a source, of equal size, at most 5 GiB."""
    # The largest possible object, 50 TB, fits into parts below 5 GiB.
    count = min(-(-size // limits.copy_part_bytes), limits.most_parts)
    for number in range(count):
        start = size * number // count
        yield start, size * (number + 1) // count - start


def _pass_through(
    source: SourceObject, writer: OutputWriter, store: ObjectStore, limits: WorkerLimits
) -> tuple[str, tuple[StoredPart, ...]]:
    try:
        if source.size > limits.most_uploaded_bytes:
            detail = f"{source.size} bytes, and this store copies nothing safely: too many parts"
            raise UnreadableSource(QuarantineReason.TOO_LARGE, detail)
        for body in store.read_sources((source,)):
            if body.error is not None:
                raise body.error
            for chunk in body.chunks() if body.chunks is not None else (body.content or b"",):
                writer.write(chunk)
        return writer.finish()
    except BaseException:
        writer.abort()
        raise
