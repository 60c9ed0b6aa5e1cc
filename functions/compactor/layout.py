"""The layout of the buckets: keys of outputs, of the commit log and of run files.

Every function returns (bucket, key) or (bucket, prefix); prefixes end in ``/``.
"""

from __future__ import annotations

import hashlib

from compactor.errors import InvalidInput
from compactor.model import Partition, is_run_id
from compactor.settings.settings import Settings
from compactor.settings.uris import S3Uri

# Below the state's prefix. `partitions/` outlives a run; `runs/` holds what one run needs.
PARTITIONS = "partitions/"
RUNS = "runs/"
TABLE = "table/"
RECONCILE = "reconcile/"
READERS = "readers/"
SCHEMES = "schemes/"
#: Prefix of the ids that :func:`round_id` returns.
IDENTITY_NAME = "identity.json"
_MAX_KEY_BYTES = 1024
# The longest suffix of a partition's path is the name of an output: at most 100 bytes of stem, 33
# of group id and 34 of extension.
_LONGEST_NAME = 170


def partition_at(settings: Settings, path: str) -> Partition:
    """Return the partition with this path."""
    root = settings.source.root
    return Partition(root.bucket, root.prefix + path, path)


def longest_path(settings: Settings) -> int:
    """Return the longest path, in bytes, with which all keys of a partition fit S3's limit."""
    places = (settings.destination.prefix, f"{settings.state.prefix}{PARTITIONS}")
    return _MAX_KEY_BYTES - _LONGEST_NAME - max(len(place.encode()) for place in places)


def run_key(settings: Settings, run_id: str, name: str) -> tuple[str, str]:
    """Return the key of a file of a run, such as ``items.json`` or ``report.json``.

    Raises:
        InvalidInput: the run id is not valid as one segment of a key.
    """
    if not is_run_id(run_id):
        accepted = "1 to 128 letters, digits and . _ : -, the first a letter or digit"
        raise InvalidInput("run_id", run_id, accepted)
    return _state(settings, f"{RUNS}{run_id}/{name}")


def runs_prefix(settings: Settings) -> tuple[str, str]:
    """Return the prefix of the files of all runs."""
    return _state(settings, RUNS)


def receipt_key(settings: Settings, run_id: str, partition: Partition) -> tuple[str, str]:
    """Return the key of a worker's receipt for one partition in one run."""
    return run_key(settings, run_id, f"receipts/{partition.id}.json")


def clean_up_list_key(settings: Settings, run_id: str) -> tuple[str, str]:
    """Return the key of the list of partitions that a run's clean-up goes through."""
    return run_key(settings, run_id, "clean-up.json")


def clean_up_receipt_key(settings: Settings, run_id: str, partition: Partition) -> tuple[str, str]:
    """Return the key of the receipt of a run's clean-up for one partition."""
    return run_key(settings, run_id, f"clean-ups/{partition.id}.json")


def identity_key(settings: Settings) -> tuple[str, str]:
    """Return the key of the state's identity; see :mod:`compactor.log.identity`."""
    return _state(settings, IDENTITY_NAME)


def schemes_prefix(settings: Settings) -> tuple[str, str]:
    """Return the prefix of the recorded schemes (:mod:`compactor.log.schemes`)."""
    return _state(settings, SCHEMES)


def scheme_key(settings: Settings, sequence: int) -> tuple[str, str]:
    """Return the key of one recorded scheme."""
    return _state(settings, f"{SCHEMES}{sequence:020d}.json")


def scheme_copy_key(settings: Settings, sequence: int) -> tuple[str, str]:
    """Return the key of the copy of a scheme. The copy is written before the scheme itself."""
    return _state(settings, f"scheme-copies/{sequence:020d}.json")


def probe_key(state: S3Uri, endpoint_url: str) -> tuple[str, str]:
    """Return the key of the record of the probe of this endpoint."""
    name = hashlib.blake2b(endpoint_url.encode(), digest_size=16).hexdigest()
    return state.bucket, f"{state.prefix}probes/{name}.json"


def probe_prefix(state: S3Uri, name: str) -> tuple[str, str]:
    """Return the prefix of the temporary objects of one probe."""
    return state.bucket, f"{state.prefix}probes/{name}/"


def commits_prefix(settings: Settings, partition: Partition) -> tuple[str, str]:
    """Return the prefix of a partition's commit log.

    Only names directly below it belong to the log. Another partition may have the path
    ``<path>commits/``, and then its log is deeper.
    """
    return _state(settings, f"{PARTITIONS}{partition.path}commits/")


def commit_key(settings: Settings, partition: Partition, sequence: int) -> tuple[str, str]:
    """Return the key of one commit. Keys sort by sequence number."""
    return _state(settings, entry_name(partition.path, sequence))


def witness_key(settings: Settings, partition: Partition, sequence: int) -> tuple[str, str]:
    """Return the key of a commit's witness, which is listed with the commit."""
    return _state(settings, witness_name(partition.path, sequence))


def publication_key(settings: Settings, partition: Partition, sequence: int) -> tuple[str, str]:
    """Return the key of the marker by which a later run records that it published a commit.

    It is listed with the commit.
    """
    return _state(settings, f"{PARTITIONS}{partition.path}commits/{sequence:020d}.published.json")


def entry_name(path: str, sequence: int) -> str:
    """Return the key of one commit, relative to the state's prefix."""
    return f"{PARTITIONS}{path}commits/{sequence:020d}.json.gz"


def witness_name(path: str, sequence: int) -> str:
    """Return the key of a commit's witness, relative to the state's prefix."""
    return f"{PARTITIONS}{path}commits/{sequence:020d}.witness.json"


def record_name(path: str, sequence: int) -> str:
    """Return the key of clean-up's record of a finished commit, relative to the state's prefix.

    As in the log, only names directly below ``cleaned/`` count: another partition may have the
    path ``<path>cleaned/``.
    """
    return f"{PARTITIONS}{path}cleaned/{sequence:020d}.json"


def rest_key(settings: Settings, partition: Partition) -> tuple[str, str]:
    """Return the key of the record that a partition is at rest."""
    return _state(settings, f"{PARTITIONS}{partition.path}at-rest.json")


def checkpoint_key(settings: Settings, partition: Partition, sequence: int) -> tuple[str, str]:
    """Return the key of the checkpoint of all commits through this sequence number."""
    return _state(settings, checkpoint_name(partition.path, sequence))


def checkpoint_name(path: str, sequence: int) -> str:
    """Return the key of a checkpoint, relative to the state's prefix."""
    return f"{PARTITIONS}{path}commits/{sequence:020d}.checkpoint.json.gz"


def dead_letters_uri(settings: Settings, partition: Partition) -> str:
    """Return the URI of the prefix of a partition's dead-letter records."""
    bucket, prefix = dead_letters_key(settings, partition, "")
    return f"s3://{bucket}/{prefix}"


def dead_letters_key(settings: Settings, partition: Partition, name: str) -> tuple[str, str]:
    """Return the key of an object with dead-letter records of a partition."""
    return _state(settings, f"{PARTITIONS}{partition.path}dead-letters/{name}")


def parquet_schemas_prefix(settings: Settings) -> tuple[str, str]:
    """Return the prefix of the pinned columns of Parquet outputs, one list per destination."""
    return _state(settings, "parquet-schemas/")


def parquet_schema_key(settings: Settings, sequence: int) -> tuple[str, str]:
    """Return the key of one entry of the pinned columns."""
    return _state(settings, f"parquet-schemas/{sequence:020d}.json")


def table_log_prefix(settings: Settings) -> tuple[str, str]:
    """Return the prefix of the table log, which lists the outputs given to a table by number."""
    return _state(settings, TABLE)


def table_entry_key(settings: Settings, number: int) -> tuple[str, str]:
    """Return the key of one entry of the table log."""
    return _state(settings, f"{TABLE}{number:020d}.json")


def table_witness_key(settings: Settings, number: int) -> tuple[str, str]:
    """Return the key of the witness of one entry of the table log."""
    return _state(settings, f"{TABLE}{number:020d}.witness.json")


def table_published_key(settings: Settings, number: int) -> tuple[str, str]:
    """Return the key of the marker that an entry was seen in the table."""
    return _state(settings, f"{TABLE}{number:020d}.published.json")


def table_checkpoint_key(settings: Settings, number: int) -> tuple[str, str]:
    """Return the key of the checkpoint of the table log through this entry."""
    return _state(settings, f"{TABLE}{number:020d}.checkpoint.json")


def table_hint_key(settings: Settings) -> tuple[str, str]:
    """Return the key of the hint to the table log's newest checkpoint."""
    return _state(settings, f"{TABLE}hint.json")


def run_history_key(settings: Settings) -> tuple[str, str]:
    """Return the key of the list of the last runs; see :mod:`compactor.report.run_history`."""
    return _state(settings, "run-history.json")


def table_receipt_key(settings: Settings, run_id: str) -> tuple[str, str]:
    """Return the key of the publisher's receipt of the table in one run."""
    return run_key(settings, run_id, "table.json")


def readers_marker_key(state: S3Uri) -> tuple[str, str]:
    """Return the key of the marker that names the readers' table of a destination."""
    return state.bucket, f"{state.prefix}{READERS}table.json"


def switch_key(state: S3Uri, partition: Partition, switch: str) -> tuple[str, str]:
    """Return the key of the marker that the catalog was seen to show the result of a switch."""
    bucket, prefix = switches_below(state, partition)
    return bucket, f"{prefix}{switch}.json"


def switches_below(state: S3Uri, partition: Partition) -> tuple[str, str]:
    """Return the prefix of the markers of a partition's switches."""
    return state.bucket, f"{state.prefix}{READERS}switches/{partition.id}/"


def reconcile_key(settings: Settings, stream: str) -> tuple[str, str]:
    """Return the key of the progress of reconciling a stream."""
    return _state(settings, f"{RECONCILE}{stream}.json")


def output_prefix(settings: Settings, partition: Partition) -> tuple[str, str]:
    """Return the prefix of a partition's outputs."""
    destination = settings.destination
    return destination.bucket, destination.prefix + partition.path


def _state(settings: Settings, name: str) -> tuple[str, str]:
    state = settings.state
    return state.bucket, state.prefix + name
