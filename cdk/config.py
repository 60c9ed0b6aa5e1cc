"""The deployment's configuration: cdk.json's context and ``-c``, checked before anything else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Self

from cdk import maintenance_fields as tables
from cdk.deployment_fields import ALIASES, DEPLOYMENT_KEYS, RUN_KEYS
from cdk.readers import BUNDLED, MOST_ALARM_HOURS, RELEASE, alarm_hours, rate_minutes, read_key
from compactor.errors import InvalidInput
from compactor.maintenance.request import MaintenanceRequest
from compactor.settings.fields import FIELDS
from compactor.settings.settings import Settings
from compactor.settings.tables import KEYS_SUFFIX, S3TABLES, TableAddress, parse_inventory_table
from compactor.settings.uris import S3Uri
from compactor.sizes import MIB

# Stand for the names that CloudFormation gives buckets without one. No bucket can be called so:
# the suffix is reserved for access points.
MADE_SOURCE = "made-by-the-stack-source-s3alias"
MADE_DESTINATION = "made-by-the-stack-destination-s3alias"
#: Stands for the name of the registry's table, which CloudFormation gives.
MADE_REGISTRY = "made-by-the-stack"

#: Iceberg of the EMR release, of which "Using Apache Iceberg with EMR Serverless" and "Use an
#: Iceberg cluster with Spark" give the place; its name there has the 3 of Spark 3. Spark resolves
#: patterns, and of one that nothing matches the job itself can tell.
RELEASE_JARS = "/usr/share/aws/iceberg/lib/iceberg-spark*runtime*.jar"

# The only catalog whose tables a function can publish to.
_CATALOG = "glue"

_IA_DAYS = 30
# What a worker needs beside what it reads ahead: the interpreter, a window's manifest, three parts.
_WORKER_BASE_BYTES = 384 * MIB
# Keys of the CDK's own tools that neither start with @ nor have a colon.
_OTHERS = frozenset({"acknowledged-issue-numbers", "cli-telemetry"})
# Amazon's rules for a new one; dots, which it still allows, break TLS by host name.
_NEW_BUCKET = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
_LIFECYCLE = ("ia_days", "archive_days", "archive_class", "expire_days", "noncurrent_days")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What to deploy. Names of attributes are names of keys; those of a run are in ``run``.

    :data:`cdk.deployment_fields.DEPLOYMENT_KEYS` says what each key means and accepts.
    """

    run: Settings
    name: str
    mode: str
    create_source_bucket: bool
    create_destination_bucket: bool
    kms_key_arn: str | None
    source_kms_key_arn: str | None
    inventory_kms_key_arn: str | None
    access_logs_uri: str | None
    versioned: bool
    noncurrent_days: int
    ia_days: int | None
    archive_days: int | None
    archive_class: str
    expire_days: int | None
    superseded_days: int | None
    superseded_class: str
    schedule: str
    schedule_time_zone: str
    schedule_enabled: bool
    ingest: str
    events_objects: int
    events_bytes: int
    events_seconds: int
    sweep_minutes: int
    reconcile_hours: int
    reconcile_inventory: str | None
    switch_on_notifications: bool
    table_location_uri: str | None
    table_kms_key_arn: str | None
    maintenance: Mapping[str, Any] | None
    maintenance_locations: tuple[str, ...]
    maintenance_kms_key_arn: str | None
    maintenance_schedule: str
    maintenance_schedule_enabled: bool
    maintenance_jars: str
    glue_optimizers: tuple[str, ...]
    architecture: str
    worker_memory_mb: int
    worker_reserved_concurrency: int | None
    spark_architecture: str
    spark_python: str
    spark_jars: str | tuple[str, ...]
    spark_timeout_seconds: int
    emr_release_label: str
    emr_serverless_max_vcpus: int
    emr_subnet_id: str | None
    emr_primary_instance_type: str
    emr_core_instance_type: str
    emr_core_instance_count: int
    alarm_email: str | None
    missed_run_hours: int | None
    log_retention_days: int

    @classmethod
    def from_context(cls, context: Mapping[str, Any]) -> Self:
        """Check a context; keys of the CDK itself (``@aws-cdk/…``, ``aws:cdk:…``) are left alone.

        Raises:
            InvalidInput: names the first key at fault, its value and what is accepted.
        """
        given = _own_keys(context)
        values: dict[str, Any] = {
            name: read_key(spec, given.get(name, spec.default))
            for name, spec in DEPLOYMENT_KEYS.items()
        }
        values["create_source_bucket"] |= given.get("s3_source_uri") is None
        values["create_destination_bucket"] |= given.get("s3_destination_uri") is None
        config = cls(run=_run(given, values), **values)
        _check_lifecycle(config, given)
        _check_buckets(config, given)
        _check_inventory(config)
        _check_spark(config, given)
        _check_worker(config)
        _check_alarm(config)
        _check_table(config, given)
        _check_maintenance(config)
        return config

    @property
    def standalone(self) -> bool:
        """True when one function takes the place of the workflow."""
        return self.mode == "standalone"

    @property
    def events(self) -> bool:
        """True when S3 tells of objects, and runs start by what waits."""
        return self.ingest == "events"

    @property
    def inventory_uri(self) -> str | None:
        """What S3 delivers the inventory to that something here takes; None where none does."""
        uri = self.run.inventory_manifest_uri or self.reconcile_inventory
        return uri if uri is not None and uri.startswith("s3://") else None

    @property
    def inventory_table(self) -> TableAddress | None:
        """The live inventory table that something here takes; None where none does."""
        if self.run.inventory_table is not None:
            return self.run.inventory_table_address
        given = self.reconcile_inventory
        return None if given is None or self.inventory_uri else parse_inventory_table(given)

    @property
    def table_locations(self) -> tuple[S3Uri, ...]:
        """Where the table of the outputs lies, and that of its keys; none without."""
        address = self.run.table_address
        if address is None:
            return ()
        uri = self.table_location_uri
        if uri is None:
            uri = f"{self.run.s3_destination_uri.removesuffix('/')}.table/"
            if self.run.upsert_key:
                # Iceberg's own rule on Spark, for a warehouse that has tables of several databases.
                uri += f"{address.name[0]}.db/{address.name[1]}/"
        uris = [uri, f"{uri.removesuffix('/')}{KEYS_SUFFIX}/"]
        return tuple(
            S3Uri.parse("table_location_uri", one) for one in uris[: 1 + bool(self.run.upsert_key)]
        )

    @property
    def jars(self) -> tuple[str, ...] | None:
        """Archives for Spark's tables that are there already; None where the stack brings them."""
        if self.spark_jars == BUNDLED:
            return None
        return (RELEASE_JARS,) if self.spark_jars == RELEASE else tuple(self.spark_jars)

    @property
    def tables_request(self) -> MaintenanceRequest | None:
        """What a run of maintenance is asked; None where nothing is maintained."""
        return tables.tables_request(self.maintenance, self.run)

    @property
    def table_engines(self) -> list[str]:
        """Which engines there are for tables."""
        return tables.table_engines(self.run)

    @property
    def deletes(self) -> bool:
        """True when clean-up may delete sources."""
        return self.run.clean_up == "delete"

    @property
    def made_source(self) -> bool:
        """True when the stack makes the source's bucket."""
        shared = self.run.source.root.bucket == self.run.destination.bucket
        return self.create_source_bucket or (shared and self.create_destination_bucket)

    @property
    def made_destination(self) -> bool:
        """True when the stack makes the destination's bucket."""
        shared = self.run.source.root.bucket == self.run.destination.bucket
        return self.create_destination_bucket or (shared and self.create_source_bucket)

    @property
    def alarm_hours(self) -> int:
        """Hours without a run that are too many."""
        return self.missed_run_hours or alarm_hours(self.schedule)

    @property
    def tables_alarm_hours(self) -> int:
        """Hours without a run of maintenance that are too many."""
        return alarm_hours(self.maintenance_schedule)

    def run_input(self) -> dict[str, Any]:
        """The run's input: URIs, and whatever differs from the defaults of FIELDS."""
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
        # A destination that is a whole bucket has no default place for its state.
        return ""


def _own_keys(context: Mapping[str, Any]) -> dict[str, Any]:
    known = {*RUN_KEYS, *DEPLOYMENT_KEYS}
    given: dict[str, Any] = {}
    for key, value in context.items():
        if key.startswith("@") or ":" in key or key in _OTHERS:
            continue
        name = ALIASES.get(key, key)
        if name not in known:
            near = get_close_matches(key, known | ALIASES.keys(), n=1)
            hint = (
                f"did you mean {near[0]}?" if near else "docs/deployment.md has a table of all keys"
            )
            raise InvalidInput(key, value, f"no such key; {hint}")
        if name in given:
            raise InvalidInput(key, value, f"one of {key} and its other name, not both")
        given[name] = value
    return given


def _run(given: Mapping[str, Any], own: Mapping[str, Any]) -> Settings:
    mode = own["mode"]
    values = {name: read_key(spec, given[name]) for name, spec in RUN_KEYS.items() if name in given}
    if values.get("s3_source_uri") is None:
        values["s3_source_uri"] = f"s3://{MADE_SOURCE}/raw/"
    if values.get("s3_destination_uri") is None:
        values["s3_destination_uri"] = f"s3://{MADE_DESTINATION}/compacted/"
    formats = (values.get("format"), values.get("output_format"))
    if mode == "standalone" and ("parquet" in formats or values.get("table") is not None):
        raise InvalidInput("mode", mode, '"workflow" for Parquet, which only Spark writes')
    engine = "none" if mode == "standalone" else RUN_KEYS["spark_engine"].default
    if own["ingest"] == "events":
        values |= _by_events(values, own)
    values.setdefault("spark_engine", "emr" if values.get("emr_cluster_id") else engine)
    return Settings.from_input(values)


def _by_events(given: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a run that takes what waits in the registry of the stack."""
    if own["mode"] == "standalone":
        raise InvalidInput("ingest", "events", '"schedule" with mode standalone')
    made = {"listing": "events", "registry": f"{MADE_REGISTRY}/{own['name']}"}
    for name, value in made.items():
        if given.get(name) not in (None, value):
            raise InvalidInput(name, given[name], "none with ingest events, which sets it")
    return made


def _check_superseded(config: Config, given: Mapping[str, Any]) -> None:
    days = config.superseded_days
    if days is None:
        return
    if not (config.made_destination or config.made_source):
        accepted = (
            "null where the stack makes no bucket: docs/maintenance.md has the rule for yours"
        )
        raise InvalidInput("superseded_days", given["superseded_days"], accepted)
    if config.superseded_class == "standard_ia" and days < _IA_DAYS:
        accepted = f"at least {_IA_DAYS} for standard_ia: S3 moves nothing to IA earlier"
        raise InvalidInput("superseded_days", days, accepted)


def _check_lifecycle(config: Config, given: Mapping[str, Any]) -> None:
    _check_superseded(config, given)
    if not config.made_destination:
        for name in _LIFECYCLE:
            if given.get(name) is not None:
                accepted = "no lifecycle of a bucket that the stack does not make"
                raise InvalidInput(name, given[name], accepted)
        return
    ia, archive, expire = config.ia_days, config.archive_days, config.expire_days
    if ia is not None and ia < _IA_DAYS:
        raise InvalidInput("ia_days", ia, f"at least {_IA_DAYS}: S3 moves nothing to IA earlier")
    if archive is not None and ia is not None and archive < ia + _IA_DAYS:
        accepted = f"at least ia_days + {_IA_DAYS}, {ia + _IA_DAYS}: IA is billed for 30 days"
        raise InvalidInput("archive_days", archive, accepted)
    moves = [days for days in (ia, archive) if days is not None]
    if expire is not None and moves and expire <= max(moves):
        accepted = f"more than the last move to another class, {max(moves)} days"
        raise InvalidInput("expire_days", expire, accepted)


def _check_buckets(config: Config, given: Mapping[str, Any]) -> None:
    run = config.run
    for name, made, bucket in (
        ("s3_source_uri", config.made_source, run.source.root.bucket),
        ("s3_destination_uri", config.made_destination, run.destination.bucket),
    ):
        if made and not _NEW_BUCKET.fullmatch(bucket):
            accepted = "a bucket name of 3 to 63 small letters, digits and hyphens, when it is made"
            raise InvalidInput(name, getattr(run, name), accepted)
    if config.made_destination or config.made_source:
        return
    for name in ("access_logs_uri", "versioned"):
        if given.get(name):
            accepted = "nothing when the stack makes no bucket: set it where the bucket is made"
            raise InvalidInput(name, given[name], accepted)


def _check_inventory(config: Config) -> None:
    key, given = config.inventory_kms_key_arn, config.reconcile_inventory
    taken = (config.run.inventory_manifest_uri, config.run.inventory_table, given)
    if key is not None and not any(taken):
        accepted = "nothing without inventory_manifest_uri: no inventory is taken"
        raise InvalidInput("inventory_kms_key_arn", key, accepted)
    if given is not None and not config.events:
        raise InvalidInput("reconcile_inventory", given, 'null unless ingest is "events"')
    address = config.run.inventory_table_address
    if address is not None and address.kind != S3TABLES:
        accepted = (
            "s3tables:TABLE_BUCKET_ARN#NAMESPACE.TABLE in a deployment, which gives rights to such"
            " tables alone; others are for compactor run"
        )
        raise InvalidInput("inventory_table", address.text, accepted)


def _check_spark(config: Config, given: Mapping[str, Any]) -> None:
    engine = config.run.spark_engine
    if given.get("spark_jars") is not None and not config.run.upsert_key:
        accepted = "nothing without upsert_key: then Spark writes no table"
        raise InvalidInput("spark_jars", given["spark_jars"], accepted)
    if config.standalone and engine != "none":
        raise InvalidInput("spark_engine", engine, '"none" when mode is standalone')
    if engine != "emr":
        return
    if config.run.emr_cluster_id is None and config.emr_subnet_id is None:
        spec = DEPLOYMENT_KEYS["emr_subnet_id"]
        accepted = f'{spec.accepted}, when spark_engine is "emr" without emr_cluster_id'
        raise InvalidInput("emr_subnet_id", given.get("emr_subnet_id"), accepted)
    for name in ("emr_primary_instance_type", "emr_core_instance_type"):
        _check_instance(name, getattr(config, name), config.spark_architecture)


def _check_instance(name: str, instance: str, architecture: str) -> None:
    # m6g, c7gd, r8gn: the letter g behind the generation says Graviton.
    _, _, options = instance.split(".", maxsplit=1)[0].partition(_generation(instance))
    found = "arm64" if options.startswith("g") else "x86_64"
    if found != architecture:
        accepted = f"an instance type of spark_architecture {architecture}; this one is {found}"
        raise InvalidInput(name, instance, accepted)


def _generation(instance: str) -> str:
    return next((letter for letter in instance if letter.isdigit()), ".")


def _check_worker(config: Config) -> None:
    needed = config.run.memory_budget_bytes + _WORKER_BASE_BYTES
    if config.worker_memory_mb * MIB < needed:
        accepted = f"at least {-(-needed // MIB)}: memory_budget_bytes and 384 MB beside it"
        raise InvalidInput("worker_memory_mb", config.worker_memory_mb, accepted)
    reserved = config.worker_reserved_concurrency
    if reserved is not None and not config.standalone and reserved < config.run.max_concurrency:
        accepted = f"at least max_concurrency, {config.run.max_concurrency}, else workers fail"
        raise InvalidInput("worker_reserved_concurrency", reserved, accepted)


def _check_alarm(config: Config) -> None:
    minutes = rate_minutes(config.schedule)
    if minutes is not None and minutes > config.alarm_hours * 60:
        accepted = (
            f"more than the {minutes // 60} hours between two runs, at most {MOST_ALARM_HOURS}"
        )
        raise InvalidInput("missed_run_hours", config.alarm_hours, accepted)


def _check_table(config: Config, given: Mapping[str, Any]) -> None:
    address = config.run.table_address
    if address is None:
        for name in ("table_location_uri", "table_kms_key_arn"):
            if given.get(name) is not None:
                raise InvalidInput(name, given[name], "null without a table")
        return
    if address.kind != _CATALOG:
        accepted = "glue:DATABASE.TABLE in a deployment; other tables are for compactor run"
        raise InvalidInput("table", address.text, accepted)
    if config.table_location_uri is not None:
        _check_table_locations(config)
    if config.made_destination and config.archive_days and config.archive_class != "glacier_ir":
        accepted = "glacier_ir with a table: engines read its data files at any time"
        raise InvalidInput("archive_class", config.archive_class, accepted)
    if config.expire_days is not None:
        accepted = "null with a table, whose data files the outputs are"
        raise InvalidInput("expire_days", config.expire_days, accepted)


def _check_table_locations(config: Config) -> None:
    run = config.run
    places = {"source": run.source.root, "destination": run.destination, "state": run.state}
    for location in config.table_locations:
        for name, place in places.items():
            if location.overlaps(place):
                accepted = f"a place that neither contains the {name} {place.uri} nor lies in it"
                if location.uri != config.table_location_uri:
                    accepted += f", and the keys beside it, {location.uri}, neither"
                raise InvalidInput("table_location_uri", config.table_location_uri, accepted)


def _check_maintenance(config: Config) -> None:
    places = {"state": config.run.state, "destination": config.run.destination}
    tables.check_locations(
        config.maintenance, config.maintenance_locations, places, optimizers=config.glue_optimizers
    )
    if config.maintenance is not None and config.standalone:
        raise InvalidInput("mode", config.mode, '"workflow" with maintenance')
