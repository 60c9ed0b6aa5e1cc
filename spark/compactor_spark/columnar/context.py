"""What columnar work on one group needs to know beside the group itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from pyspark import Accumulator

from compactor.destination import Destination
from compactor.model import Partition
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings

#: Codec of outputs whose sources have none of Parquet's, or one that few readers know.
USUAL_CODEC = "zstd"
#: Codecs that every reader of Parquet knows.
KNOWN_CODECS = frozenset({"none", "snappy", "gzip", "zstd"})


@dataclass(frozen=True, slots=True)
class ColumnarContext:
    """One partition's part in a run.

    Attributes:
        settings: of the run.
        store: used on the driver, by several threads concurrently.
        destination: where the partition's outputs go.
        run_id: of the run.
        open_store: makes a store in a task; it travels there pickled.
        requests: takes what tasks ask of their stores; None where it is not counted.
    """

    settings: Settings
    store: ObjectStore
    destination: Destination
    run_id: str
    open_store: Callable[[], ObjectStore]
    requests: Accumulator[Counter[str]] | None = None

    @property
    def partition(self) -> Partition:
        """The partition whose outputs these are."""
        path = self.destination.prefix.removeprefix(self.settings.destination.prefix)
        root = self.settings.source.root
        return Partition(root.bucket, root.prefix + path, path)

    def codec(self, found: str = USUAL_CODEC) -> str:
        """Compression inside an output; ``found`` is that of its sources."""
        if self.settings.compression != "same":
            return self.settings.compression
        return found if found in KNOWN_CODECS else USUAL_CODEC
