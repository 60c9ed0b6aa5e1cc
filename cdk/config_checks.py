"""Checks of keys that depend on each other; each error names the key at fault."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cdk import maintenance_fields as tables
from cdk.emr_serverless import missing_in
from cdk.readers import (
    CLASSES,
    EMR_CLUSTER,
    EXPIRE,
    MAINTAINED,
    RESTORED_FIRST,
    SOURCE,
    TABLE,
)
from compactor.errors import InvalidInput

if TYPE_CHECKING:
    from cdk.config import Config

#: The value of ``spark_engine`` for EMR Serverless.
SERVERLESS = "emr_serverless"
# The only catalog that functions can publish to.
_CATALOG = "glue"

# S3 moves no object to IA earlier than this, and bills each for at least as long.
_DAYS_OF_A_CLASS = 30
# Amazon's rules for new buckets, without dots: S3 allows them, but they break TLS by host name.
_NEW_BUCKET = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")


def require_sense(config: Config, given: Mapping[str, Any]) -> None:
    """Reject keys that contradict each other.

    Args:
        config: all keys, parsed.
        given: the keys that were set, unparsed.

    Raises:
        InvalidInput: names the key at fault.
    """
    _check_lifecycle(config, given)
    _check_buckets(config, given)
    _check_keys(config)
    _check_spark(config, given)
    _check_worker(config)
    _check_table(config)
    _check_readers(config)
    _check_maintenance(config)


def require_region(config: Config, region: str | None) -> None:
    """Reject EMR Serverless in a region that lacks it or the release.

    Args:
        config: all keys, parsed.
        region: the region of the deployment; None if it is not known yet.

    Raises:
        InvalidInput: names ``spark_engine``.
    """
    engine = config.run.spark_engine
    if region is None or engine != SERVERLESS:
        return
    missing = missing_in(region, config.emr_release_label)
    if missing:
        accepted = (
            f'"none" in {region}, which has no {missing}; with engine "worker", Lambda compacts'
            " oversized partitions, too"
        )
        raise InvalidInput("spark_engine", engine, accepted)


def _check_lifecycle(config: Config, given: Mapping[str, Any]) -> None:
    lifecycle = config.lifecycle
    if not config.made_destination:
        if given.get("lifecycle"):
            accepted = "nothing for a bucket that the stack does not make"
            raise InvalidInput("lifecycle", given["lifecycle"], accepted)
        return
    before = 0
    for name in (one for one in CLASSES if one in lifecycle):
        if lifecycle[name] < before + _DAYS_OF_A_CLASS:
            accepted = (
                f"{name} of at least {before + _DAYS_OF_A_CLASS}: {_DAYS_OF_A_CLASS} days in each"
                " class before the next"
            )
            raise InvalidInput("lifecycle", lifecycle, accepted)
        before = lifecycle[name]
    if lifecycle.get(EXPIRE, before + 1) <= before:
        accepted = f"{EXPIRE} of more than the last move to another class, {before} days"
        raise InvalidInput("lifecycle", lifecycle, accepted)


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


def _check_keys(config: Config) -> None:
    there = {
        SOURCE: not config.maintenance_alone,
        TABLE: config.run.table_address is not None,
        MAINTAINED: config.maintenance is not None,
    }
    for what in config.kms_keys:
        if not there.get(what, True):
            accepted = f"keys without {what}, which this deployment does not have"
            raise InvalidInput("kms_keys", config.kms_keys, accepted)


def _check_spark(config: Config, given: Mapping[str, Any]) -> None:
    engine = config.run.spark_engine
    if given.get("spark_jars") is not None and not (config.run.upsert_key or config.table_formats):
        accepted = "nothing without upsert_key or maintenance by Spark: then Spark writes no table"
        raise InvalidInput("spark_jars", given["spark_jars"], accepted)
    if config.standalone and engine != "none":
        raise InvalidInput("spark_engine", engine, '"none" when mode is standalone')
    if engine != "emr":
        return
    if config.emr_cluster is None:
        accepted = f'{EMR_CLUSTER.accepted}, when spark_engine is "emr"'
        raise InvalidInput("emr_cluster", None, accepted)
    _check_instance(config.emr_instance_type, config.architecture)


def _check_instance(instance: str, architecture: str) -> None:
    # m6g, c7gd, r8gn: a g right after the generation means Graviton.
    _, _, options = instance.split(".", maxsplit=1)[0].partition(_generation(instance))
    found = "arm64" if options.startswith("g") else "x86_64"
    if found != architecture:
        accepted = f"an instance_type of architecture {architecture}; this one is {found}"
        raise InvalidInput("emr_cluster", instance, accepted)


def _generation(instance: str) -> str:
    return next((letter for letter in instance if letter.isdigit()), ".")


def _check_worker(config: Config) -> None:
    reserved = config.worker_reserved_concurrency
    if reserved is not None and not config.standalone and reserved < config.run.max_concurrency:
        accepted = f"at least max_concurrency, {config.run.max_concurrency}, else workers fail"
        raise InvalidInput("worker_reserved_concurrency", reserved, accepted)


def _check_table(config: Config) -> None:
    address = config.run.table_address
    if address is None:
        if config.table_location_uri is not None:
            raise InvalidInput(
                "table_location_uri", config.table_location_uri, "null without a table"
            )
        return
    if address.kind != _CATALOG:
        accepted = "glue:DATABASE.TABLE in a deployment; other tables are for compactor run"
        raise InvalidInput("table", address.text, accepted)
    if config.table_location_uri is not None:
        _check_table_locations(config)
    _check_queried(config, "a table, whose data files the outputs are")


def _check_readers(config: Config) -> None:
    if config.run.reader_table is not None:
        _check_queried(config, "reader_table, which shows the outputs")


def _check_queried(config: Config, by: str) -> None:
    """Reject a lifecycle that makes outputs unavailable to the engines that query them."""
    for name in (*RESTORED_FIRST, EXPIRE):
        if name in config.lifecycle:
            accepted = f"no {name} with {by}: engines read them at any time"
            raise InvalidInput("lifecycle", config.lifecycle, accepted)


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
        raise InvalidInput("mode", config.mode, '"workflow" or "maintenance" with maintenance')
    tables.check_jars(
        config.tables_request,
        config.spark_jars,
        spark=tables.tables_spark(config.run),
    )
