"""Context for columnar work on one group: settings, stores and destination."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from pyspark import Accumulator

from compactor.destination import Destination
from compactor.model import Partition
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings

#: Codec of outputs whose sources have no Parquet codec, or one that few readers support.
USUAL_CODEC = "zstd"
#: Codecs that every Parquet reader supports.
KNOWN_CODECS = frozenset({"none", "snappy", "gzip", "zstd"})


@dataclass(frozen=True, slots=True)
class ColumnarContext:
    """Context for the groups of one partition.

    Attributes:
        settings: of the run.
        store: used on the driver, by several threads concurrently.
        destination: of the partition's outputs.
        run_id: of the run.
        open_store: opens a store in a task; pickled and sent there.
        requests: counts the tasks' requests to their stores; None if they are not counted.
    """

    settings: Settings
    store: ObjectStore
    destination: Destination
    run_id: str
    open_store: Callable[[], ObjectStore]
    requests: Accumulator[Counter[str]] | None = None

    @property
    def partition(self) -> Partition:
        """The partition that the outputs belong to."""
        path = self.destination.prefix.removeprefix(self.settings.destination.prefix)
        root = self.settings.source.root
        return Partition(root.bucket, root.prefix + path, path)

    def codec(self, found: str = USUAL_CODEC) -> str:
        """Return the compression inside an output; ``found`` is that of its sources."""
        if self.settings.compression != "same":
            return self.settings.compression
        return found if found in KNOWN_CODECS else USUAL_CODEC
