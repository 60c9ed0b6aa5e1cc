"""Where everything lies in the buckets: keys of outputs, of the commit log and of runs.

Every function returns (bucket, key) or (bucket, prefix); prefixes end in ``/``.
"""

from __future__ import annotations

import hashlib

from compactor.errors import InvalidInput
from compactor.model import Partition, is_run_id
from compactor.settings.settings import Settings
from compactor.settings.uris import S3Uri

# Below the state's prefix: what outlives a run, by partition; and what a run needs for itself.
PARTITIONS = "partitions/"
RUNS = "runs/"
TABLE = "table/"
RECONCILE = "reconcile/"
READERS = "readers/"
SCHEMES = "schemes/"
#: Before the name of a stream, in :func:`round_id`.
ROUND = "reconcile-"
IDENTITY_NAME = "identity.json"
_MAX_KEY_BYTES = 1024
# What follows a partition's path: at most the name of an output, 100 of stem, 33 of group id and
# 34 of extension.
_LONGEST_NAME = 170


def partition_at(settings: Settings, path: str) -> Partition:
    """The partition with this path."""
    root = settings.source.root
    return Partition(root.bucket, root.prefix + path, path)


def longest_path(settings: Settings) -> int:
    """How long the path of a partition may be, so that its outputs and commits have keys; bytes."""
    places = (settings.destination.prefix, f"{settings.state.prefix}{PARTITIONS}")
    return _MAX_KEY_BYTES - _LONGEST_NAME - max(len(place.encode()) for place in places)


def run_key(settings: Settings, run_id: str, name: str) -> tuple[str, str]:
    """A run's own record, such as ``items.json`` or ``report.json``.

    Raises:
        InvalidInput: the run id could not be one segment of a key.
    """
    if not is_run_id(run_id):
        accepted = "1 to 128 letters, digits and . _ : -, the first a letter or digit"
        raise InvalidInput("run_id", run_id, accepted)
    return _state(settings, f"{RUNS}{run_id}/{name}")


def runs_prefix(settings: Settings) -> tuple[str, str]:
    """Where the records of all runs lie."""
    return _state(settings, RUNS)


def receipt_key(settings: Settings, run_id: str, partition: Partition) -> tuple[str, str]:
    """What one worker reports of one partition in one run."""
    return run_key(settings, run_id, f"receipts/{partition.id}.json")


def clean_up_list_key(settings: Settings, run_id: str) -> tuple[str, str]:
    """Which partitions a run's clean-up goes through."""
    return run_key(settings, run_id, "clean-up.json")


def clean_up_receipt_key(settings: Settings, run_id: str, partition: Partition) -> tuple[str, str]:
    """What a run's clean-up reports of one partition."""
    return run_key(settings, run_id, f"clean-ups/{partition.id}.json")


def identity_key(settings: Settings) -> tuple[str, str]:
    """The marker that says which log this state is; see :mod:`compactor.log.identity`."""
    return _state(settings, IDENTITY_NAME)


def schemes_prefix(settings: Settings) -> tuple[str, str]:
    """Where :mod:`compactor.log.schemes` keeps how sources were divided into partitions."""
    return _state(settings, SCHEMES)


def scheme_key(settings: Settings, sequence: int) -> tuple[str, str]:
    """One entry there."""
    return _state(settings, f"{SCHEMES}{sequence:020d}.json")


def scheme_copy_key(settings: Settings, sequence: int) -> tuple[str, str]:
    """The copy of a later scheme, written before it."""
    return _state(settings, f"scheme-copies/{sequence:020d}.json")


def probe_key(state: S3Uri, endpoint_url: str) -> tuple[str, str]:
    """What the store at this endpoint answered when it was asked, for the state's bucket."""
    asked = f"{endpoint_url}\0{state.bucket}".encode()
    name = hashlib.blake2b(asked, digest_size=16).hexdigest()
    return state.bucket, f"{state.prefix}probes/{name}.json"


def probe_prefix(state: S3Uri, name: str) -> tuple[str, str]:
    """Where one round of questions writes what it removes again."""
    return state.bucket, f"{state.prefix}probes/{name}/"


def commits_prefix(settings: Settings, partition: Partition) -> tuple[str, str]:
    """A partition's commit log.

    Only names directly below it belong to the log: a partition of another run may be called
    ``<path>commits/``, and its log then lies deeper.
    """
    return _state(settings, f"{PARTITIONS}{partition.path}commits/")


def commit_key(settings: Settings, partition: Partition, sequence: int) -> tuple[str, str]:
    """One commit; keys sort by sequence number."""
    return _state(settings, entry_name(partition.path, sequence))


def witness_key(settings: Settings, partition: Partition, sequence: int) -> tuple[str, str]:
    """What keeps a commit's number taken; listed with it."""
    return _state(settings, witness_name(partition.path, sequence))


def publication_key(settings: Settings, partition: Partition, sequence: int) -> tuple[str, str]:
    """What a later run leaves when it publishes a commit; listed with it."""
    return _state(settings, f"{PARTITIONS}{partition.path}commits/{sequence:020d}.published.json")


def entry_name(path: str, sequence: int) -> str:
    """Key of one commit below the state's prefix, of the partition with this path."""
    return f"{PARTITIONS}{path}commits/{sequence:020d}.json.gz"


def witness_name(path: str, sequence: int) -> str:
    """Key below the state's prefix of the witness of one commit."""
    return f"{PARTITIONS}{path}commits/{sequence:020d}.witness.json"


def record_name(path: str, sequence: int) -> str:
    """Key below the state's prefix of what clean-up leaves once it is done with a commit.

    As in the log, only names directly below ``cleaned/`` count: a partition may be called
    ``<path>cleaned/``.
    """
    return f"{PARTITIONS}{path}cleaned/{sequence:020d}.json"


def rest_key(settings: Settings, partition: Partition) -> tuple[str, str]:
    """What a worker saw of a partition in which nothing was left to be done."""
    return _state(settings, f"{PARTITIONS}{partition.path}at-rest.json")


def checkpoint_key(settings: Settings, partition: Partition, sequence: int) -> tuple[str, str]:
    """The sum of all commits up to and including this sequence number."""
    return _state(settings, checkpoint_name(partition.path, sequence))


def checkpoint_name(path: str, sequence: int) -> str:
    """Key of a checkpoint below the state's prefix, of the partition with this path."""
    return f"{PARTITIONS}{path}commits/{sequence:020d}.checkpoint.json.gz"


def rejects_uri(settings: Settings, partition: Partition) -> str:
    """Where the records of a partition lie that fit no row of an output."""
    bucket, prefix = rejects_key(settings, partition, "")
    return f"s3://{bucket}/{prefix}"


def rejects_key(settings: Settings, partition: Partition, name: str) -> tuple[str, str]:
    """Records of a partition that fit no output; kept as long as its commits."""
    return _state(settings, f"{PARTITIONS}{partition.path}rejects/{name}")


def parquet_schemas_prefix(settings: Settings) -> tuple[str, str]:
    """Where the columns of converted outputs are pinned, for all partitions of a destination."""
    return _state(settings, "parquet-schemas/")


def parquet_schema_key(settings: Settings, sequence: int) -> tuple[str, str]:
    """One entry there."""
    return _state(settings, f"parquet-schemas/{sequence:020d}.json")


def csv_dialects_prefix(settings: Settings, data_set: str) -> tuple[str, str]:
    """Where it is pinned whether the CSV sources of a data set have a header, by shape."""
    return _state(settings, f"csv-dialects/{Partition('', data_set, data_set).id}/")


def table_log_prefix(settings: Settings) -> tuple[str, str]:
    """Where the table log lies, which says what outputs a table was given under which number."""
    return _state(settings, TABLE)


def table_entry_key(settings: Settings, number: int) -> tuple[str, str]:
    """One entry of the table log."""
    return _state(settings, f"{TABLE}{number:020d}.json")


def table_witness_key(settings: Settings, number: int) -> tuple[str, str]:
    """What keeps the number of that entry taken."""
    return _state(settings, f"{TABLE}{number:020d}.witness.json")


def table_published_key(settings: Settings, number: int) -> tuple[str, str]:
    """What says that the table was seen with that entry in it."""
    return _state(settings, f"{TABLE}{number:020d}.published.json")


def table_checkpoint_key(settings: Settings, number: int) -> tuple[str, str]:
    """The sum of all entries of the table log up to and including this one."""
    return _state(settings, f"{TABLE}{number:020d}.checkpoint.json")


def table_hint_key(settings: Settings) -> tuple[str, str]:
    """Where the table log's newest checkpoint is, as far as a hint was written."""
    return _state(settings, f"{TABLE}hint.json")


def table_receipt_key(settings: Settings, run_id: str) -> tuple[str, str]:
    """What a run's publisher reports of the table."""
    return run_key(settings, run_id, "table.json")


def readers_marker_key(state: S3Uri) -> tuple[str, str]:
    """What says that query engines read the destination by a table, and by which."""
    return state.bucket, f"{state.prefix}{READERS}table.json"


def switch_key(state: S3Uri, partition: Partition, switch: str) -> tuple[str, str]:
    """What says that the catalog was seen to show a partition as one switch left it."""
    bucket, prefix = switches_below(state, partition)
    return bucket, f"{prefix}{switch}.json"


def switches_below(state: S3Uri, partition: Partition) -> tuple[str, str]:
    """Where all that is said of the switches of a partition lies."""
    return state.bucket, f"{state.prefix}{READERS}switches/{partition.id}/"


def reconcile_key(settings: Settings, stream: str) -> tuple[str, str]:
    """How far reconciling a stream is."""
    return _state(settings, f"{RECONCILE}{stream}.json")


def round_id(stream: str, begun_at: float) -> str:
    """What a round of reconciling takes of an inventory lies where that of a run of this id does.

    Args:
        stream: name.
        begun_at: the round, UNIX seconds.
    """
    return f"{ROUND}{stream}-{int(begun_at)}"


def staging_prefix(settings: Settings, run_id: str, name: str) -> tuple[str, str]:
    """Where Spark puts what is not yet part of an upload."""
    return run_key(settings, run_id, f"staging/{name}/")


def output_prefix(settings: Settings, partition: Partition) -> tuple[str, str]:
    """Where a partition's outputs lie."""
    destination = settings.destination
    return destination.bucket, destination.prefix + partition.path


def _state(settings: Settings, name: str) -> tuple[str, str]:
    state = settings.state
    return state.bucket, state.prefix + name
