"""The Lambda functions of compaction, and the rights of each."""

from __future__ import annotations

from aws_cdk import Annotations, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk.checks import CHECKPOINTS
from cdk.config import Config
from cdk.encryption import encryption_of_runs
from cdk.function_set import FunctionSet
from cdk.grants import (
    Role,
    may_abort_uploads,
    may_delete,
    may_list,
    may_list_uploads,
    may_look_for,
    may_mark,
    may_note_discovery,
    may_read,
    may_register,
    may_see_owners,
    may_write,
)
from cdk.reader_table import may_ask_readers, may_switch, reader_table_of
from cdk.storage import Storage
from cdk.tables import Table, may_ask_table, may_publish, table_of
from compactor.encoding.output_encoding import ASSUMED_RATIO, target_bytes
from compactor.layout import RECONCILE
from compactor.log.identity import marker_keys, states_around, states_of_source
from compactor.model import Compression
from compactor.settings.settings import Settings
from compactor.sizes import MIB

# A batch of a thousand messages takes a few seconds.
REGISTER_TIMEOUT_SECONDS = 60
# "New AWS accounts have reduced concurrency and memory quotas" (Lambda quotas): their limit.
_NEW_ACCOUNTS_MB = 3_008
# Discovery holds the listing of one partition and the list of all partitions. A report holds a
# bounded part of the receipts, but parses all of them, which takes a whole processor. Planning a
# clean-up holds the list that it writes.
_DISCOVER_MB, _REPORT_MB, _PLAN_CLEAN_UP_MB, _CLEAN_UP_MB = 1_769, 1_769, 1_024, 1_024
# Lambda's limits of ephemeral storage ("Configure ephemeral storage for Lambda functions").
_LEAST_SCRATCH_MB, _MOST_SCRATCH_MB = 512, 10_240
_REGISTER_MB, _SWEEP_MB, _PUBLISH_MB = 1_024, 1_024, 1_024


class Functions(FunctionSet):
    """The functions of the workflow and its triggers, or the one of standalone mode."""

    def __init__(self, scope: Construct, config: Config, storage: Storage) -> None:
        super().__init__(scope, config, encryption_of_runs(config, storage))
        self._storage = storage
        self._table = table_of(Stack.of(self), config, storage)
        self._readers = reader_table_of(Stack.of(self), config, storage)
        if config.worker_memory_mb > _NEW_ACCOUNTS_MB:
            Annotations.of(self).add_info(
                f"Accounts that are new or little used may not have functions above"
                f" {_NEW_ACCOUNTS_MB:,} MB, and worker_memory_mb is {config.worker_memory_mb:,}:"
                " should the deployment fail with \"'MemorySize' value failed to satisfy"
                ' constraint", leave it at its default.'
            )
        if config.standalone:
            self._add_standalone()
        else:
            self._add_workflow_functions()

    def _add_workflow_functions(self) -> None:
        self._add_discover()
        self._add_compact_partition()
        self._add_plan_clean_up()
        self._add_clean_up()
        self._add_report()
        if self._table is not None:
            self._add_publish_table(self._table)
        if self._config.events:
            self._add_register()
            self._add_sweep()

    def _add_discover(self) -> None:
        role = self.add("discover", _DISCOVER_MB, knows_table=self._table is not None)
        engine = self._config.run.spark_engine
        self.by_name["discover"].add_environment("COMPACTOR_SPARK", engine)
        memory_mb = str(self._config.worker_memory_mb)
        self.by_name["discover"].add_environment("COMPACTOR_WORKER_MB", memory_mb)
        may_list(role, self._storage.source)
        # Columns are inferred from a sample of the sources.
        may_read(role, self._storage.source)
        may_see_owners(role, self._storage.source)
        # Discovery checks for outputs that were written with another layout than this run's.
        may_list(role, self._storage.destination)
        may_read(role, self._storage.state)
        may_write(role, self._storage.state)
        may_look_around(role, self._storage)
        if self._table is not None:
            # Discovery checks that the table can take the outputs before any are written.
            may_ask_table(role, self._table)
        may_note_discovery(role, self._storage.registry)

    def _add_compact_partition(self) -> None:
        role = self.add(
            "compact_partition",
            self._config.worker_memory_mb,
            reserved=self._config.worker_reserved_concurrency,
            scratch_mb=_scratch_mb(self._config.run),
        )
        may_compact(role, self._storage)
        if self._config.events:
            # With events, discovery leaves pending objects to this function.
            may_see_owners(role, self._storage.source)
        may_mark(role, self._storage.registry)
        self._may_switch(role)

    def _add_plan_clean_up(self) -> None:
        role = self.add("plan_clean_up", _PLAN_CLEAN_UP_MB)
        may_read(role, self._storage.state)
        may_write(role, self._storage.state, "runs/*/clean-up.json")
        self._may_drop_checkpoints(role)

    def _add_clean_up(self) -> None:
        role = self.add("clean_up", _CLEAN_UP_MB, knows_table=self._table is not None)
        if self._table is not None:
            # Clean-up checks that published outputs are still in the table.
            may_ask_table(role, self._table)
        if self._readers is not None:
            may_ask_readers(role, self._readers)
        self._may_clean_up(role)
        if self._config.deletes:
            # Sources that S3 did not delete are checked by HEAD: a missing one must be 404, not
            # 403, and S3 returns the checksum of an encrypted object only with its key.
            may_read(role, self._storage.source)
            may_see_owners(role, self._storage.source)
        may_read(role, self._storage.state)
        may_read(role, self._storage.destination)
        may_abort_uploads(role, self._storage.destination)
        # Its records and receipts. Commits end in .json.gz, so these patterns do not match them
        # even if a partition is called cleaned/.
        may_write(role, self._storage.state, "partitions/*cleaned/*.json")
        may_write(role, self._storage.state, "runs/*/clean-ups/*.json")

    def _add_report(self) -> None:
        role = self.add("report", _REPORT_MB)
        may_read(role, self._storage.state)
        may_write(role, self._storage.state)

    def _add_standalone(self) -> None:
        role = self.add(
            "standalone",
            self._config.worker_memory_mb,
            reserved=self._config.worker_reserved_concurrency,
            scratch_mb=_scratch_mb(self._config.run),
        )
        may_compact(role, self._storage)
        may_see_owners(role, self._storage.source)
        may_look_around(role, self._storage)
        self._may_clean_up(role)
        self._may_drop_checkpoints(role)
        self._may_switch(role)

    def _may_switch(self, role: iam.Role) -> None:
        if self._readers is not None:
            may_switch(role, self._readers)

    def _may_drop_checkpoints(self, role: iam.Role) -> None:
        if self._config.deletes:
            may_delete(role, self._storage.state, CHECKPOINTS)

    def _may_clean_up(self, role: iam.Role) -> None:
        may_list_uploads(role, self._storage.destination)
        if self._config.deletes:
            may_delete(role, self._storage.source)

    def _add_publish_table(self, table: Table) -> None:
        role = self.add("publish_table", _PUBLISH_MB, knows_table=True)
        may_read(role, self._storage.destination)
        may_read(role, self._storage.state)
        may_write(role, self._storage.state)
        may_publish(role, table)

    def _add_register(self) -> None:
        role = self.add("register", _REGISTER_MB, timeout_seconds=REGISTER_TIMEOUT_SECONDS)
        may_register(role, self._storage.registry)

    def _add_sweep(self) -> None:
        role = self.add("sweep", _SWEEP_MB)
        may_register(role, self._storage.registry)
        # It looks for objects that no event announced, and in the log for those compacted already.
        may_read(role, self._storage.state)
        # Progress of the reconcile.
        may_write(role, self._storage.state, f"{RECONCILE}*.json")
        may_list(role, self._storage.source)


def _scratch_mb(run: Settings) -> int:
    """Return the size of a worker's ``/tmp``, which holds one output of rows before its upload.

    Should none of its records compress, the output is as large as they are.
    """
    needed = ASSUMED_RATIO * target_bytes(run, Compression.ZSTD) // MIB
    return min(max(needed, _LEAST_SCRATCH_MB), _MOST_SCRATCH_MB)


def may_compact(role: Role, storage: Storage) -> None:
    """Allow reading sources and writing outputs and state, without deleting anything."""
    may_read(role, storage.source)
    may_read(role, storage.destination)
    may_write(role, storage.destination)
    may_read(role, storage.state)
    may_write(role, storage.state)


def may_look_around(role: Role, storage: Storage) -> None:
    """Allow checking that neither the state nor the source lies in another destination's state."""
    source, state = storage.source, storage.state
    may_look_for(role, source, marker_keys(states_of_source(source.prefix)))
    may_look_for(role, state, marker_keys(states_around(state.prefix)))
