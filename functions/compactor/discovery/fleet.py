"""What is known of a run's workers before it starts."""

from __future__ import annotations

import msgspec

from compactor.discovery.speed import MEASURED_PROCESSORS, speeds_of
from compactor.discovery.work_items import Largest
from compactor.settings.settings import Settings

# Lambda provides processors in proportion to memory: one for 1,769 MB ("Configure Lambda function
# memory" in its developer guide).
_MB_PER_PROCESSOR = 1_769
#: Default memory of the compaction function, in MB.
USUAL_WORKER_MB = 3_008
# Target time of a batch, and time of a partition apart from its objects: about eleven sequential
# requests to S3 of 100 to 200 ms each ("Best practices design patterns: optimizing Amazon S3
# performance" in its user guide).
_BATCH_SECONDS, PARTITION_SECONDS = 90.0, 1.5
# Their counts are passed from call to call in the workflow's state, which is limited to 256 KiB.
_MOST_OF_A_BATCH = 40


def processors_of(memory_mb: int) -> float:
    """Return the number of processors of a Lambda function with ``memory_mb``."""
    return memory_mb / _MB_PER_PROCESSOR


class Fleet(msgspec.Struct, frozen=True):
    """The workers of a run.

    Attributes:
        processors: processors of one worker.
    """

    processors: float = MEASURED_PROCESSORS

    def batch_partitions(self, count: int, largest: Largest, settings: Settings) -> int:
        """Return the number of partitions per child execution, processed sequentially; at least 1.

        Even if all partitions of a batch were as large as the largest, the batch takes a minute or
        two, so that workers finish at about the same time. Batches are also small enough for all
        workers to get one.

        Args:
            count: number of partitions.
            largest: the largest of them; the slowest format is assumed.
            settings: settings of the run.
        """
        slowest = (
            speed.on(self.processors).seconds(largest.objects, largest.bytes)
            for speed in speeds_of(settings)
        )
        fits = int(_BATCH_SECONDS / (max(slowest) + PARTITION_SECONDS))
        each = count // settings.max_concurrency
        return max(1, min(fits, each, _MOST_OF_A_BATCH))
