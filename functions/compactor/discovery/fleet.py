"""The workers of a run, as far as they are known before it begins."""

from __future__ import annotations

import msgspec

from compactor.discovery.speed import MEASURED_PROCESSORS, SPEEDS
from compactor.discovery.work_items import Largest
from compactor.settings.settings import Settings

# Lambda gives processors in proportion to memory, and one at this size ("Configure Lambda function
# memory" in its developer guide).
_MB_PER_PROCESSOR = 1_769
#: Of the compaction function, in MB, unless it is deployed with another.
USUAL_WORKER_MB = 3_008
# That a batch may take, and that a partition takes beside its objects: it waits for some eleven
# answers of S3, sequentially, each of 100 to 200 ms ("Best practices design patterns:
# optimizing Amazon S3 performance" in its user guide).
_BATCH_SECONDS, PARTITION_SECONDS = 90.0, 1.5
# Their counts are carried from call to call, in a state that holds 256 KiB.
_MOST_OF_A_BATCH = 40


def processors_of(memory_mb: int) -> float:
    """How many processors a Lambda function of so many MB has."""
    return memory_mb / _MB_PER_PROCESSOR


class Fleet(msgspec.Struct, frozen=True):
    """What the workers are.

    Attributes:
        processors: that one worker has.
        concurrent: workers that the account lets run concurrently; None where it is unknown.
    """

    processors: float = MEASURED_PROCESSORS
    concurrent: int | None = None

    def concurrency(self, settings: Settings) -> int:
        """How many partitions are begun at the same time: what is asked for, as far as it goes.

        One that is begun beyond what the account allows only waits, and fails when it has waited
        too long.
        """
        wanted = settings.max_concurrency
        return wanted if self.concurrent is None else min(wanted, self.concurrent)

    def batch_partitions(self, count: int, largest: Largest, settings: Settings) -> int:
        """How many partitions one child execution works on, sequentially; at least 1.

        As many as take a minute or two however the large ones lie, so that no worker is at the
        end of its list while others have long been; and not so many that workers go without.

        Args:
            count: of the partitions.
            largest: of them, of whatever kind their sources are.
            settings: of the run.
        """
        slowest = (
            speed.on(self.processors).seconds(largest.objects, largest.bytes)
            for speed in SPEEDS.values()
        )
        fits = int(_BATCH_SECONDS / (max(slowest) + PARTITION_SECONDS))
        each = count // self.concurrency(settings)
        return max(1, min(fits, each, _MOST_OF_A_BATCH))

    def warnings(self, settings: Settings) -> tuple[str, ...]:
        """What the report of the run is to say of them, one line each."""
        if self.concurrency(settings) == settings.max_concurrency:
            return ()
        line = (
            f"the account runs {self.concurrent:,} Lambda functions concurrently, all of them"
            f" together, so that not {settings.max_concurrency:,} (max_concurrency) but at most"
            f" {self.concurrent:,} partitions were compacted concurrently: for more, ask for a"
            ' higher quota "Concurrent executions" of AWS Lambda'
        )
        return (line,)
