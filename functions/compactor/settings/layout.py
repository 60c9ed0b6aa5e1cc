"""The layout of a state: keys of the commit logs, of the table log and of run files."""

from __future__ import annotations

from dataclasses import dataclass

from compactor.errors import InvalidInput
from compactor.model import Partition, is_run_id
from compactor.settings.uris import S3Uri

# Below the state's prefix. `partitions/` outlives a run; `runs/` holds what one run needs.
PARTITIONS = "partitions/"
RUNS = "runs/"
TABLE = "table/"
RECONCILE = "reconcile/"
READERS = "readers/"
IDENTITY_NAME = "identity.json"
_MAX_KEY_BYTES = 1024
# The longest suffix of a partition's path is the name of an output: at most 100 bytes of stem, 33
# of group id and 34 of extension.
_LONGEST_NAME = 170

#: Bucket and key; or bucket and prefix, which ends in ``/``.
Place = tuple[str, str]


@dataclass(frozen=True, slots=True)
class StateLayout:
    """Where the files of a state are.

    Attributes:
        state: location of the state.
    """

    state: S3Uri

    # Of the state.

    @property
    def identity(self) -> Place:
        """The state's identity; see :mod:`compactor.log.identity`."""
        return self._at(IDENTITY_NAME)

    @property
    def run_history(self) -> Place:
        """The list of the last runs; see :mod:`compactor.report.run_history`."""
        return self._at("run-history.json")

    @property
    def parquet_schemas(self) -> Place:
        """Prefix of the pinned columns of Parquet outputs, one list per destination."""
        return self._at("parquet-schemas/")

    def parquet_schema(self, number: int) -> Place:
        """Return the key of one entry of the pinned columns."""
        return self._at(f"parquet-schemas/{number:020d}.json")

    @property
    def table_log(self) -> Place:
        """Prefix of the table log, which lists the outputs given to a table by number."""
        return self._at(TABLE)

    def table_entry(self, number: int) -> Place:
        """Return the key of one entry of the table log."""
        return self._at(f"{TABLE}{number:020d}.json")

    @property
    def table_hint(self) -> Place:
        """The hint to the table log's newest checkpoint."""
        return self._at(f"{TABLE}hint.json")

    @property
    def readers_marker(self) -> Place:
        """The marker that names the readers' table of the destination."""
        return self._at(f"{READERS}table.json")

    def reconcile(self, stream: str) -> Place:
        """Return the key of the progress of reconciling a stream."""
        return self._at(f"{RECONCILE}{stream}.json")

    # Of a partition. In a directory of numbered files only names directly below count: another
    # partition may have the path "<path>commits/", and then its log is deeper.

    def commits(self, path: str) -> Place:
        """Return the prefix of the commit log of the partition with this path."""
        return self._at(f"{PARTITIONS}{path}commits/")

    def commit(self, path: str, number: int) -> Place:
        """Return the key of one commit. Keys sort by number."""
        return self._at(f"{PARTITIONS}{path}commits/{number:020d}.json.gz")

    def cleaned(self, path: str, number: int) -> Place:
        """Return the key of clean-up's record of a commit that it has finished."""
        return self._at(f"{PARTITIONS}{path}cleaned/{number:020d}.json")

    def dead_letters(self, path: str, name: str = "") -> Place:
        """Return the key of an object with dead-letter records, or the prefix of all."""
        return self._at(f"{PARTITIONS}{path}dead-letters/{name}")

    def switches(self, partition: Partition) -> Place:
        """Return the prefix of the markers of a partition's switches."""
        return self._at(f"{READERS}switches/{partition.id}/")

    def switch(self, partition: Partition, switch: str) -> Place:
        """Return the key of the marker that the catalog was seen to show a switch's result."""
        return self._at(f"{READERS}switches/{partition.id}/{switch}.json")

    # Of a run.

    @property
    def runs(self) -> Place:
        """Prefix of the files of all runs."""
        return self._at(RUNS)

    def run(self, run_id: str, name: str = "") -> Place:
        """Return the key of a file of a run, such as ``report.json``; the prefix of all by default.

        Raises:
            InvalidInput: the run id is not valid as one segment of a key.
        """
        if not is_run_id(run_id):
            accepted = "1 to 128 letters, digits and . _ : -, the first a letter or digit"
            raise InvalidInput("run_id", run_id, accepted)
        return self._at(f"{RUNS}{run_id}/{name}")

    def receipt(self, run_id: str, partition: Partition) -> Place:
        """Return the key of a worker's receipt for one partition."""
        return self.run(run_id, f"receipts/{partition.id}.json")

    def table_receipt(self, run_id: str) -> Place:
        """Return the key of the publisher's receipt of the table."""
        return self.run(run_id, "table.json")

    def clean_up_list(self, run_id: str) -> Place:
        """Return the key of the list of partitions that the run's clean-up goes through."""
        return self.run(run_id, "clean-up.json")

    def clean_up_receipt(self, run_id: str, partition: Partition) -> Place:
        """Return the key of the receipt of the run's clean-up for one partition."""
        return self.run(run_id, f"clean-ups/{partition.id}.json")

    def _at(self, name: str) -> Place:
        return self.state.bucket, self.state.prefix + name


def longest_path(destination: S3Uri, state: S3Uri) -> int:
    """Return the longest path, in bytes, with which all keys of a partition fit S3's limit."""
    places = (destination.prefix, f"{state.prefix}{PARTITIONS}")
    return _MAX_KEY_BYTES - _LONGEST_NAME - max(len(place.encode()) for place in places)
