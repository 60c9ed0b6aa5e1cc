"""What keys of the configuration must not say together; each check names the key at fault."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cdk import maintenance_fields as tables
from cdk.deployment_fields import DEPLOYMENT_KEYS
from cdk.readers import MOST_ALARM_HOURS, rate_minutes
from compactor.errors import InvalidInput
from compactor.settings.tables import S3TABLES

if TYPE_CHECKING:
    from cdk.config import Config

# The only catalog whose tables a function can publish to.
_CATALOG = "glue"

_IA_DAYS = 30
# Amazon's rules for a new one; dots, which it still allows, break TLS by host name.
_NEW_BUCKET = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
_LIFECYCLE = ("ia_days", "archive_days", "archive_class", "expire_days")


def require_sense(config: Config, given: Mapping[str, Any]) -> None:
    """Refuse keys that contradict each other.

    Args:
        config: all keys, read.
        given: those that were given, as they were.

    Raises:
        InvalidInput: names the key at fault.
    """
    _check_lifecycle(config, given)
    _check_buckets(config, given)
    _check_inventory(config)
    _check_spark(config, given)
    _check_worker(config)
    _check_alarm(config)
    _check_table(config, given)
    _check_readers(config)
    _check_maintenance(config, given)


def _check_superseded(config: Config, given: Mapping[str, Any]) -> None:
    if config.superseded_days is None:
        return
    if not (config.made_destination or config.made_source):
        accepted = (
            "null where the stack makes no bucket: docs/maintenance.md has the rule for yours"
        )
        raise InvalidInput("superseded_days", given["superseded_days"], accepted)


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
    takes = config.run.listing_kind == "inventory" or given is not None
    if key is not None and not takes:
        accepted = "nothing without listing inventory:URI: no inventory is taken"
        raise InvalidInput("inventory_kms_key_arn", key, accepted)
    if given is not None and not config.events:
        raise InvalidInput("reconcile_inventory", given, 'null unless ingest is "events"')
    address = config.run.listing_source.table
    if address is not None and address.kind != S3TABLES:
        accepted = (
            "inventory:s3tables:TABLE_BUCKET_ARN#NAMESPACE.TABLE in a deployment, which gives"
            " rights to such tables alone; others are for compactor run"
        )
        raise InvalidInput("listing", config.run.listing, accepted)


def _check_spark(config: Config, given: Mapping[str, Any]) -> None:
    engine = config.run.spark_engine
    if given.get("spark_jars") is not None and not (config.run.upsert_key or config.table_formats):
        accepted = "nothing without upsert_key or maintenance by Spark: then Spark writes no table"
        raise InvalidInput("spark_jars", given["spark_jars"], accepted)
    if config.standalone and engine != "none":
        raise InvalidInput("spark_engine", engine, '"none" when mode is standalone')
    if engine != "emr":
        return
    if config.run.emr_cluster_id is None and config.emr_subnet_id is None:
        spec = DEPLOYMENT_KEYS["emr_subnet_id"]
        accepted = f'{spec.accepted}, when spark_engine is "emr" without emr_cluster_id'
        raise InvalidInput("emr_subnet_id", given.get("emr_subnet_id"), accepted)
    _check_instance(config.emr_instance_type, config.architecture)


def _check_instance(instance: str, architecture: str) -> None:
    # m6g, c7gd, r8gn: the letter g after the generation says Graviton.
    _, _, options = instance.split(".", maxsplit=1)[0].partition(_generation(instance))
    found = "arm64" if options.startswith("g") else "x86_64"
    if found != architecture:
        accepted = f"an instance type of architecture {architecture}; this one is {found}"
        raise InvalidInput("emr_instance_type", instance, accepted)


def _generation(instance: str) -> str:
    return next((letter for letter in instance if letter.isdigit()), ".")


def _check_worker(config: Config) -> None:
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
    _check_queried(
        config,
        archive="glacier_ir with a table: engines read its data files at any time",
        expire="null with a table, whose data files the outputs are",
    )


def _check_readers(config: Config) -> None:
    if config.run.reader_table is not None:
        _check_queried(
            config,
            archive="glacier_ir with reader_table: engines read outputs at any time",
            expire="null with reader_table, whose lists name outputs",
        )


def _check_queried(config: Config, *, archive: str, expire: str) -> None:
    """Refuse a lifecycle that takes outputs away from whoever queries them."""
    if config.made_destination and config.archive_days and config.archive_class != "glacier_ir":
        raise InvalidInput("archive_class", config.archive_class, archive)
    if config.expire_days is not None:
        raise InvalidInput("expire_days", config.expire_days, expire)


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


def _check_maintenance(config: Config, given: Mapping[str, Any]) -> None:
    places = {"state": config.run.state, "destination": config.run.destination}
    tables.check_locations(
        config.maintenance, config.maintenance_locations, places, optimizers=config.glue_optimizers
    )
    if config.maintenance is not None and config.standalone:
        raise InvalidInput("mode", config.mode, '"workflow" with maintenance')
    tables.check_jars(
        config.tables_request,
        config.spark_jars,
        spark=tables.tables_spark(config.run),
    )
