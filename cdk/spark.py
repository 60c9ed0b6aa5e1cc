"""What runs oversized partitions: EMR on EC2, a running cluster, EMR Serverless, or nothing.

In every case all substitutions of the workflow's definition get a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from aws_cdk import Aws, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from cdk import REPOSITORY
from cdk.assets import asset, spark_application, spark_jar, spark_libraries
from cdk.bundles import SCRIPT, Machine
from cdk.config import Config
from cdk.config_checks import SERVERLESS
from cdk.emr import (
    MAINTAINS,
    MERGES,
    RUNS,
    AnyCluster,
    Engine,
    MadeClusters,
    MayRun,
    NoEngine,
    Serverless,
)
from cdk.encryption import encryption_of, encryption_of_runs
from cdk.functions import may_compact
from cdk.grants import (
    IN_THIS_ACCOUNT,
    Role,
    allow,
    may_list_uploads,
    may_mark,
    may_read,
    may_write,
)
from cdk.maintained_tables import MaintainedTables
from cdk.maintenance_fields import tables_spark
from cdk.reader_table import may_switch, reader_table_of
from cdk.readers import EmrCluster
from cdk.spark_jars import PINNED, PINNED_DELTA
from cdk.storage import SPARK_LOGS, Place, Storage
from cdk.tables import Table, may_merge, table_of
from compactor_tables.measures import DELTA, ICEBERG

# Substitutions that both definitions have, with the same values.
_SHARED_SUBSTITUTIONS = (
    "AwsPartition",
    "AwsRegion",
    "SparkAppZipUri",
    "SparkDepsZipUri",
    "SparkEncryption",
    "SparkLogUri",
    "SparkTimeoutSeconds",
    "EmrServerlessApplicationId",
    "EmrServerlessJobRoleArn",
)
# EMR bills idle clusters; one is only idle if its run was stopped halfway.
_IDLE_SECONDS = 900
_CREATE_SECONDS = 1_800
_TERMINATE_SECONDS = 1_800
# EMR Serverless itself ends a job after twelve hours.
_JOB_SECONDS = 43_200
_NOT_DEPLOYED = "not-deployed"
# Receipts, and the logs of Spark itself.
_WRITTEN_BY_MAINTENANCE = ("runs/*/tables/*.json", f"{SPARK_LOGS}*")
# Placeholder for a Spark setting if the job writes no table: one that Spark ignores.
_NO_TABLE = "spark.compactor.table=none"


class SparkStep(Construct):
    """The Spark resources for oversized partitions and the maintenance of tables.

    Args:
        scope: the stack.
        config: what is deployed.
        state: where runs write.
        storage: the storage of compaction; None in a deployment without it.
        tables: the maintained tables; None in a deployment without maintenance.

    Attributes:
        substitutions: name in the definition -> value, always text.
        engine: the service that runs the job.
    """

    def __init__(
        self,
        scope: Construct,
        config: Config,
        state: Place,
        *,
        storage: Storage | None,
        tables: MaintainedTables | None,
    ) -> None:
        super().__init__(scope, "Spark")
        self._config, self._state = config, state
        there = config.run.spark_engine != "none"
        self._storage = storage if there else None
        # Clusters are never created for maintenance.
        self._tables = tables if tables_spark(config.run) != "none" else None
        self._assets = self._bundle()
        self._jars = self._bundle_jars()
        self._table_jars = self._bundle_table_jars()
        self.engine = self._engine()
        uris = {
            name: self._assets[name].s3_object_url if name in self._assets else _NOT_DEPLOYED
            for name in ("SparkScriptUri", "SparkAppZipUri", "SparkDepsZipUri")
        }
        cluster = config.emr_cluster or EmrCluster(_NOT_DEPLOYED)
        self.substitutions = {
            "AwsPartition": Aws.PARTITION,
            "AwsRegion": Aws.REGION,
            "SparkTableConf": self._table_conf(),
            "SparkEncryption": self._encryption(),
            "SparkLogUri": f"{state.uri}{SPARK_LOGS}",
            "SparkTimeoutSeconds": str(_JOB_SECONDS),
            "EmrReleaseLabel": config.emr_release_label,
            "EmrPrimaryInstanceType": config.emr_instance_type,
            "EmrCoreInstanceType": config.emr_instance_type,
            "EmrCoreInstanceCount": str(cluster.core_instances),
            "EmrSubnetId": cluster.subnet_id,
            "EmrIdleTimeoutSeconds": str(_IDLE_SECONDS),
            "EmrCreateTimeoutSeconds": str(_CREATE_SECONDS),
            "EmrTerminateTimeoutSeconds": str(_TERMINATE_SECONDS),
            "EmrServiceRole": _NOT_DEPLOYED,
            "EmrInstanceProfile": _NOT_DEPLOYED,
            "EmrSecurityConfiguration": _NOT_DEPLOYED,
            "EmrServerlessApplicationId": _NOT_DEPLOYED,
            "EmrServerlessJobRoleArn": _NOT_DEPLOYED,
            **uris,
            **self.engine.substitutions,
        }

    @property
    def tables_substitutions(self) -> dict[str, str]:
        """The substitutions of the definition of maintenance."""
        script = self._assets.get("MaintainScriptUri")
        shared = {name: self.substitutions[name] for name in _SHARED_SUBSTITUTIONS}
        return {
            **shared,
            "SparkEncryption": self._encryption_of_tables(),
            "MaintainScriptUri": script.s3_object_url if script is not None else _NOT_DEPLOYED,
            "TableJars": self._jars_of_tables(),
            "SparkEngine": tables_spark(self._config.run),
            "EmrClusterId": self._config.emr_cluster_id or _NOT_DEPLOYED,
        }

    def allow_workflow(self, policy: iam.Policy) -> None:
        """Allow the state machine to start, watch and stop the Spark job."""
        self.engine.allow_workflow(policy)

    def _bundle(self) -> dict[str, s3_assets.Asset]:
        machine = Machine(self._config.architecture, self._config.spark_python)
        source = REPOSITORY / "spark"
        scripts: dict[str, s3_assets.Asset] = {}
        if self._storage is not None:
            scripts["SparkScriptUri"] = s3_assets.Asset(self, "Script", path=str(SCRIPT))
        if self._tables is not None:
            script = SCRIPT.with_name("maintain_tables.py")
            scripts["MaintainScriptUri"] = s3_assets.Asset(self, "TablesScript", path=str(script))
        if not scripts:
            return {}
        return {
            **scripts,
            "SparkAppZipUri": asset(self, "Packages", source, spark_application()),
            "SparkDepsZipUri": asset(self, "Libraries", source, spark_libraries(machine)),
        }

    def _bundle_jars(self) -> list[s3_assets.Asset]:
        """Return Iceberg's jars if the job merges into a table and no existing jars are used."""
        if not self._config.run.upsert_key or self._config.jars is not None:
            return []
        return self._jar_assets("Jar", PINNED)

    def _bundle_table_jars(self) -> list[s3_assets.Asset]:
        """Return jars for the maintained formats unless existing jars are used."""
        if self._config.table_jars is not None:
            return []
        formats = self._config.table_formats
        iceberg = (self._jars or self._jar_assets("Jar", PINNED)) if ICEBERG in formats else []
        delta = self._jar_assets("DeltaJar", PINNED_DELTA) if DELTA in formats else []
        return [*iceberg, *delta]

    def _jar_assets(self, name: str, coordinates: Iterable[str]) -> list[s3_assets.Asset]:
        source = REPOSITORY / "spark"
        return [
            asset(self, f"{name}{number}", source, spark_jar(coordinate))
            for number, coordinate in enumerate(coordinates, 1)
        ]

    def _jars_of_tables(self) -> str:
        found = self._config.table_jars or [one.s3_object_url for one in self._table_jars]
        return ",".join(found) or _NOT_DEPLOYED

    def _encryption(self) -> str:
        if self._storage is None:
            return encryption_of(self._config, [self._state])
        return encryption_of_runs(self._config, self._storage)

    def _encryption_of_tables(self) -> str:
        places = self._tables.places if self._tables is not None else ()
        others = places[0].key if places else None
        return encryption_of(self._config, (*places, self._state), others)

    def _table_conf(self) -> str:
        if not self._config.run.upsert_key:
            return _NO_TABLE
        found = self._config.jars or [one.s3_object_url for one in self._jars]
        return f"spark.jars={','.join(found)}"

    def _engine(self) -> Engine:
        engine, config, storage = self._config.run.spark_engine, self._config, self._storage
        if engine == "none":
            return NoEngine()
        rights: dict[str, MayRun] = {}
        if storage is not None:
            rights[RUNS] = partial(self._may_run, storage)
            table = table_of(Stack.of(self), config, storage)
            if table is not None and table.keyed:
                rights[MERGES] = partial(self._may_merge, table)
        else:
            rights[RUNS] = self._may_run_alone
        if self._tables is not None:
            rights[MAINTAINS] = partial(self._may_maintain, self._tables)
        if engine == SERVERLESS:
            return Serverless(self, config, rights)
        if config.emr_cluster_id is not None:
            return AnyCluster(self, config, rights)
        return MadeClusters(self, config, rights)

    def _may_run(self, storage: Storage, role: Role) -> None:
        may_compact(role, storage)
        # The job looks for uploads that can no longer be completed.
        may_list_uploads(role, storage.destination)
        may_mark(role, storage.registry)
        readers = reader_table_of(Stack.of(self), self._config, storage)
        if readers is not None:
            may_switch(role, readers)
        self._may_read_assets(role, [*self._assets.values()])

    def _may_run_alone(self, role: Role) -> None:
        """Allow the job to use state and code in a deployment that only maintains tables."""
        may_read(role, self._state)
        for below in _WRITTEN_BY_MAINTENANCE:
            may_write(role, self._state, below)
        self._may_read_assets(role, [*self._assets.values()])

    def _may_merge(self, table: Table, role: Role) -> None:
        may_merge(role, table)
        self._may_read_assets(role, self._jars)
        self._may_read_given(role, self._config.jars or ())

    def _may_maintain(self, tables: MaintainedTables, role: Role) -> None:
        tables.may_rewrite(role)
        self._may_read_assets(role, self._table_jars)
        self._may_read_given(role, self._config.table_jars or ())

    def _may_read_given(self, role: Role, jars: Iterable[str]) -> None:
        """Allow reading the jars that the operator has put on S3."""
        on_s3 = [one for one in jars if one.startswith("s3://")]
        if on_s3:
            objects = [one.removeprefix("s3://") for one in on_s3]
            allow(role, ["s3:GetObject"], [f"arn:{Aws.PARTITION}:s3:::{one}" for one in objects])

    def _may_read_assets(self, role: Role, assets: Sequence[s3_assets.Asset]) -> None:
        for one in assets:
            objects = [one.bucket.arn_for_objects(one.s3_object_key)]
            allow(role, ["s3:GetObject"], objects, conditions=IN_THIS_ACCOUNT)
        if assets:
            self._may_decrypt(role, assets)

    def _may_decrypt(self, role: Role, assets: Sequence[s3_assets.Asset]) -> None:
        # `cdk bootstrap` may have been given a customer's key, which an app cannot see. The
        # encryption context of S3's requests to KMS has the ARN of the object, or of the bucket if
        # that uses a bucket key ("Using server-side encryption with AWS KMS keys").
        arns = [one.bucket.arn_for_objects(one.s3_object_key) for one in assets]
        arns += [one.bucket.bucket_arn for one in assets]
        keys = Stack.of(self).format_arn(service="kms", resource="key", resource_name="*")
        conditions = {
            "StringEquals": {
                "kms:ViaService": f"s3.{Aws.REGION}.{Aws.URL_SUFFIX}",
                "kms:EncryptionContext:aws:s3:arn": list(dict.fromkeys(arns)),
            }
        }
        why = "Which key the bucket of the CDK's assets has is not known; its objects bound it."
        allow(role, ["kms:Decrypt"], [keys], conditions=conditions, wildcard=why)
