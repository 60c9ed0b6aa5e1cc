"""Stands in for reading, framing and storing the sources of one group.

It asks S3 for the same uploads, and gives the entry of the log that the real code gives for JSON
Lines: a row a source, each with an ETag and a CRC32 of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from compactor.destination import Destination
from compactor.log.entries import Output
from compactor.log.manifest import ManifestRow, SliceFacts
from compactor.model import Compression, Format, ObjectGroup
from compactor.money.estimate import speed_for
from compactor.outputs.group_reading import ReadingTime
from compactor.outputs.pending import PendingOutput
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from tests.scale.meter import Meter
from tests.scale.services import FUNCTIONS, Services

_FACTS = SliceFacts(records=10)


class SkippedBodies:
    """Called as :func:`compactor.partition.steps.store` is.

    Args:
        meter: of the invocation that is under way.
        services: how fast S3 gives bodies.
    """

    def __init__(self, meter: Callable[[], Meter | None], services: Services) -> None:
        self._meter = meter
        self._services = services
        # Measured with two; Lambda gives them in proportion to memory.
        self._slower = 2 * 1_769 / FUNCTIONS["compact_partition"].memory_mb

    def __call__(
        self,
        group: ObjectGroup,
        settings: Settings,
        store: ObjectStore,
        destination: Destination,
        limit: ReadingTime | None = None,
    ) -> PendingOutput:
        """What the sources of a group would become."""
        began = time.thread_time()
        rows, offset = [], 0
        for source in group.sources:
            crc32 = int(source.etag[:8], 16)
            rows.append(ManifestRow(source, offset, source.size, source.size, crc32, _FACTS))
            offset += source.size
        spent = time.thread_time() - began
        output = self._stored(group, offset, settings, store, destination)
        meter = self._meter()
        if meter is not None:
            meter.skipped(len(rows), self.seconds(group, settings), spent)
        return PendingOutput(group, output, tuple(rows))

    def seconds(self, group: ObjectGroup, settings: Settings) -> float:
        """How long one worker takes: its measured speed, or what S3 allows below one prefix."""
        objects = len(group.sources)
        seconds = speed_for(group.sources[0].key, settings).seconds(objects, group.size)
        return max(seconds * self._slower, objects / self._services.s3.gets_per_second)

    @staticmethod
    def _stored(
        group: ObjectGroup, size: int, settings: Settings, store: ObjectStore, place: Destination
    ) -> Output:
        key = place.key(group, ".json")
        upload = store.create_upload(place.bucket, key, metadata=place.metadata(group))
        count = -(-size // settings.limits.part_bytes)
        parts = tuple(
            store.upload_part(place.bucket, key, upload, number, b"\n")
            for number in range(1, count + 1)
        )
        records = 10 * len(group.sources)
        return Output(
            place.bucket,
            key,
            upload,
            parts,
            size,
            0,
            size,
            records,
            Format.JSON_LINES,
            Compression.NONE,
        )
