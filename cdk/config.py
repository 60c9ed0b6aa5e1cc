"""The deployment's configuration, read from cdk.json's context and ``-c`` and checked first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Self

from cdk import maintenance_fields as tables
from cdk.config_checks import require_sense
from cdk.deployment_fields import DEPLOYMENT_KEYS, RUN_KEYS
from cdk.maintenance_fields import ALONE
from cdk.readers import BUNDLED, RELEASE, EmrCluster, Vpc, read_key
from compactor.errors import InvalidInput
from compactor.settings.fields import FIELDS
from compactor.settings.settings import PLAIN_FORMAT, Settings
from compactor.settings.tables import KEYS_SUFFIX
from compactor.settings.uris import S3Uri
from compactor_tables.measures import DELTA, ICEBERG
from compactor_tables.request import MaintenanceRequest

# Placeholders for the names that CloudFormation gives to unnamed buckets. They cannot be real
# names: AWS reserves the prefix.
MADE_SOURCE = "sthree-made-by-the-stack-source"
MADE_DESTINATION = "sthree-made-by-the-stack-destination"
#: Placeholder for the name that CloudFormation gives the registry's table.
MADE_REGISTRY = "made-by-the-stack"

#: Iceberg jars of the EMR release. The path is from "Using Apache Iceberg with EMR Serverless" and
#: "Use an Iceberg cluster with Spark", where the file name has the 3 of Spark 3, hence the pattern.
#: Spark expands it; the job checks that something matches.
RELEASE_JARS = "/usr/share/aws/iceberg/lib/iceberg-spark*runtime*.jar"

# For Delta, the guide of EMR 7 names "delta-spark.jar"; not checked in later releases.
_RELEASE_JARS = {
    ICEBERG: (RELEASE_JARS,),
    DELTA: (
        "/usr/share/aws/delta/lib/delta-spark*.jar",
        "/usr/share/aws/delta/lib/delta-storage*.jar",
    ),
}

_INSTANCES = {"arm64": "m6g.xlarge", "x86_64": "m6i.xlarge"}

# Keys of the CDK's own tools that neither start with @ nor contain a colon.
_OTHERS = frozenset({"acknowledged-issue-numbers", "cli-telemetry"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What to deploy. Attributes are named like their keys; the fields of a run are in ``run``.

    :data:`cdk.deployment_fields.DEPLOYMENT_KEYS` says what each key means and accepts.
    """

    run: Settings
    name: str
    mode: str
    create_destination_bucket: bool
    kms_keys: Mapping[str, str]
    encryption: str
    access_logs_uri: str | None
    versioned: bool
    lifecycle: Mapping[str, int]
    schedule: str | None
    schedule_time_zone: str
    ingest: str
    events_seconds: int
    reconcile_hours: int
    switch_on_notifications: bool
    table_location_uri: str | None
    maintenance: Mapping[str, Any] | None
    maintenance_locations: tuple[str, ...]
    maintenance_schedule: str | None
    glue_optimizers: tuple[str, ...]
    architecture: str
    worker_memory_mb: int
    worker_reserved_concurrency: int | None
    vpc: Vpc | None
    spark_python: str
    spark_jars: str | tuple[str, ...]
    emr_release_label: str
    emr_serverless_max_vcpus: int
    emr_cluster: EmrCluster | None
    alarm_email: str | None
    log_retention_days: int

    @classmethod
    def from_context(cls, context: Mapping[str, Any]) -> Self:
        """Read and check a context, ignoring the CDK's own keys (``@aws-cdk/…``, ``aws:cdk:…``).

        Raises:
            InvalidInput: names the first key at fault, its value and what is accepted.
        """
        given = _own_keys(context)
        values: dict[str, Any] = {
            name: read_key(spec, given.get(name, spec.default))
            for name, spec in DEPLOYMENT_KEYS.items()
        }
        values["create_destination_bucket"] |= given.get("s3_destination_uri") is None
        config = cls(run=_run(given, values), **values)
        require_sense(config, given)
        return config

    @property
    def standalone(self) -> bool:
        """True if one function replaces the workflow."""
        return self.mode == "standalone"

    @property
    def maintenance_alone(self) -> bool:
        """True if this deployment only maintains tables and compacts nothing."""
        return self.mode == ALONE

    @property
    def events(self) -> bool:
        """True if S3 notifies of objects, and pending objects start runs."""
        return self.ingest == "events"

    @property
    def sweep_minutes(self) -> int:
        """Minutes between checks of the registry for objects that are due, from 1 to 5."""
        return max(1, min(5, self.events_seconds // 180))

    @property
    def table_locations(self) -> tuple[S3Uri, ...]:
        """Locations of the outputs' table and of its key table, if any; empty without a table."""
        address = self.run.table_address
        if address is None:
            return ()
        uri = self.table_location_uri
        if uri is None:
            uri = f"{self.run.s3_destination_uri.removesuffix('/')}.table/"
            if self.run.upsert_key:
                # Where Iceberg on Spark puts a table in a warehouse of several databases.
                uri += f"{address.name[0]}.db/{address.name[1]}/"
        uris = [uri, f"{uri.removesuffix('/')}{KEYS_SUFFIX}/"]
        return tuple(
            S3Uri.parse("table_location_uri", one) for one in uris[: 1 + bool(self.run.upsert_key)]
        )

    @property
    def emr_cluster_id(self) -> str | None:
        """The id of the running cluster that Spark uses; None without one."""
        engine = self.run.spark_engine
        return engine if engine.startswith("j-") else None

    @property
    def emr_instance_type(self) -> str:
        """The instance type of the nodes of created clusters."""
        given = self.emr_cluster.instance_type if self.emr_cluster is not None else None
        return given or _INSTANCES[self.architecture]

    @property
    def jars(self) -> tuple[str, ...] | None:
        """Existing jars for the table that Spark merges into; None if the stack uploads its own."""
        if self.spark_jars == BUNDLED:
            return None
        return (RELEASE_JARS,) if self.spark_jars == RELEASE else tuple(self.spark_jars)

    @property
    def table_jars(self) -> tuple[str, ...] | None:
        """Existing jars for maintenance; None if the stack uploads its own."""
        if self.spark_jars == BUNDLED:
            return None
        if self.spark_jars != RELEASE:
            return tuple(self.spark_jars)
        return tuple(one for name in self.table_formats for one in _RELEASE_JARS[name])

    @property
    def table_formats(self) -> list[str]:
        """Formats of the tables that Spark maintains; empty if Spark maintains none."""
        spark = tables.tables_spark(self.run) != "none"
        return sorted(tables.formats_of(self.tables_request)) if spark else []

    @property
    def tables_request(self) -> MaintenanceRequest | None:
        """The request of a maintenance run; None without maintenance."""
        return tables.tables_request(self.maintenance, self.run)

    @property
    def table_engines(self) -> list[str]:
        """The engines that can maintain tables."""
        return tables.table_engines(self.run)

    @property
    def deletes(self) -> bool:
        """True if clean-up may delete sources."""
        return self.run.clean_up == "delete"

    @property
    def made_source(self) -> bool:
        """True if the stack creates the source's bucket."""
        root = self.run.source.root
        shared = root.bucket == self.run.destination.bucket
        return root.bucket == MADE_SOURCE or (shared and self.create_destination_bucket)

    @property
    def made_destination(self) -> bool:
        """True if the stack creates the destination's bucket."""
        return self.create_destination_bucket

    def run_input(self) -> dict[str, Any]:
        """Return the input of a run: its URIs, and the values that differ from FIELDS' defaults."""
        values = self.run.to_dict()
        state_is_default = values["s3_state_uri"] == _default_state(self.run)
        return {
            name: values[name]
            for name, spec in FIELDS.items()
            if (spec.required or values[name] != _plain(spec.default))
            and not (name == "s3_state_uri" and state_is_default)
        }


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _default_state(run: Settings) -> str:
    given = {"s3_source_uri": run.s3_source_uri, "s3_destination_uri": run.s3_destination_uri}
    try:
        return Settings.from_input(given).s3_state_uri
    except InvalidInput:
        # If the destination is a whole bucket, there is no default location for the state.
        return ""


def _own_keys(context: Mapping[str, Any]) -> dict[str, Any]:
    known = {*RUN_KEYS, *DEPLOYMENT_KEYS}
    given: dict[str, Any] = {}
    for key, value in context.items():
        if key.startswith("@") or ":" in key or key in _OTHERS:
            continue
        if key == PLAIN_FORMAT and "formats" not in context:
            given["formats"] = value
            continue
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = (
                f"did you mean {near[0]}?" if near else "docs/deployment.md has a table of all keys"
            )
            raise InvalidInput(key, value, f"no such key; {hint}")
        given[key] = value
    return given


def _run(given: Mapping[str, Any], own: Mapping[str, Any]) -> Settings:
    mode = own["mode"]
    if mode == ALONE:
        tables.check_keys(given)
    values = {name: read_key(spec, given[name]) for name, spec in RUN_KEYS.items() if name in given}
    if values.get("s3_source_uri") is None:
        values["s3_source_uri"] = f"s3://{MADE_SOURCE}/raw/"
    if values.get("s3_destination_uri") is None:
        values["s3_destination_uri"] = f"s3://{MADE_DESTINATION}/compacted/"
    if mode == "standalone" and values.get("table") is not None:
        raise InvalidInput("mode", mode, '"workflow" for a table')
    if own["ingest"] == "events":
        values |= _by_events(values, own)
    values.setdefault("spark_engine", _default_engine(values, own))
    return Settings.from_input(values)


def _default_engine(given: Mapping[str, Any], own: Mapping[str, Any]) -> str:
    """Return where Spark runs by default: nowhere if nothing can need it."""
    leaves_to_lambda = given.get("engine") == "worker" and own["maintenance"] is None
    if leaves_to_lambda or own["mode"] == "standalone":
        return "none"
    return str(RUN_KEYS["spark_engine"].default)


def _by_events(given: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields of a run that compacts the objects pending in the stack's registry."""
    if own["mode"] == "standalone":
        raise InvalidInput("ingest", "events", '"schedule" with mode standalone')
    made = f"events:{MADE_REGISTRY}/{own['name']}"
    if given.get("listing") not in (None, made):
        raise InvalidInput("listing", given["listing"], "none with ingest events, which sets it")
    return {"listing": made}
