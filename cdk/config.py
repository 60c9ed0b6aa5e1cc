"""The one file of a deployment, ``deployment.toml``, decoded into typed structs and checked."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec

from cdk import REPOSITORY
from cdk.regions import missing_in, optimizers_missing_in
from compactor.errors import InvalidInput
from compactor.limits import WORKER_MB
from compactor.settings.fields import FIELDS
from compactor.settings.settings import Settings
from compactor.settings.tables import KEYS_SUFFIX, parse_table
from compactor.settings.uris import S3Uri, parse_location
from compactor.settings.wire import wire_fields
from compactor_tables.measures import DELTA, ICEBERG
from compactor_tables.request import MaintenanceRequest, read_request

# Placeholders for the names that CloudFormation gives to unnamed resources. They cannot be names of
# buckets: AWS reserves the prefix.
MADE_SOURCE = "sthree-made-by-the-stack-source"
MADE_DESTINATION = "sthree-made-by-the-stack-destination"
MADE_REGISTRY = "made-by-the-stack"
#: Storage classes that outputs may move to, the warmest first; the last two must be restored first.
CLASSES = ("standard_ia", "intelligent_tiering", "glacier_ir", "glacier", "deep_archive")
EXPIRE = "expire"
_RESTORED_FIRST = CLASSES[-2:]
# S3 moves no object to IA earlier than this, and bills each class for at least as long.
_DAYS_OF_A_CLASS = 30
_MOST_DAYS = 36_500

# Jars of an EMR release. Iceberg's path is from "Using Apache Iceberg with EMR Serverless" and "Use
# an Iceberg cluster with Spark", where the file name has the 3 of Spark 3, hence the pattern, which
# Spark expands. For Delta, the guide of EMR 7 names "delta-spark.jar"; not checked in later ones.
_RELEASE_JARS = {
    ICEBERG: ("/usr/share/aws/iceberg/lib/iceberg-spark*runtime*.jar",),
    DELTA: (
        "/usr/share/aws/delta/lib/delta-spark*.jar",
        "/usr/share/aws/delta/lib/delta-storage*.jar",
    ),
}

# Fields of a run that follow from other keys.
_SET_BY = {"spark_engine": "[spark] kind", "listing": "[events]"}

# What is accepted, by the place of a value in the file.
_ACCEPTED: Mapping[str, str] = {
    "name": "3 to 32 small letters, digits and hyphens",
    "standalone": "true or false",
    "schedule": "cron(minutes hours day-of-month month day-of-week year) or rate(number unit), in"
    " UTC, such as cron(0 3 * * ? *) or rate(6 hours)",
    "lifecycle": f"days from 1 to {_MOST_DAYS:,} by storage class ({', '.join(CLASSES)}) and"
    f' {EXPIRE}, such as {{standard_ia = 30, glacier_ir = 90}}',
    "kms_key": "the ARN of a KMS key, such as arn:aws:kms:us-east-1:123456789012:key/1234abcd-…, or"
    " such ARNs by destination, source, table",
    "encryption": '"none", "AES256" or "aws:kms"',
    "vpc": "subnet_ids and security_group_ids, at most 16 and 5 ids such as"
    " subnet-0123456789abcdef0 and sg-0123456789abcdef0",
    "worker_memory_mb": "a whole number from 512 to 10,240",
    "table_location_uri": "s3://bucket/prefix/",
    "alarm_email": "an e-mail address",
    "spark": "kind, cluster_id, release, max_vcpus, architecture, python, jars",
    "spark.kind": '"serverless", "cluster" or "none"',
    "spark.cluster_id": 'the id of a running cluster, such as j-2AXXXXXXGAPLF, with kind "cluster"',
    "spark.release": "a release label, such as emr-spark-8.1.0",
    "spark.max_vcpus": "a whole number from 4 to 4,000",
    "spark.architecture": '"arm64" or "x86_64"',
    "spark.python": "3.11 or a later minor version",
    "spark.jars": '"bundled", "release", or a list of jars, each s3://bucket/key.jar or, on the'
    " machines themselves, /path/name.jar",
    "events": "seconds, notify",
    "events.seconds": "a whole number from 60 to 86,400",
    "events.notify": "true or false",
    "maintenance": "locations, schedule, glue_optimizers, kms_key and job",
    "maintenance.locations": 'a list of S3 URIs such as ["s3://lake/bronze/"]',
    "maintenance.glue_optimizers": 'a list of tables such as ["glue:bronze.events"]',
    "maintenance.job": "fields of a maintenance run, s3_state_uri among them (docs/maintenance.md)",
    "job": "the fields of a run (docs/settings.md)",
}  # fmt: skip
_CRON = re.compile(r"cron\(\S+( \S+){5}\)")
_RATE = re.compile(r"rate\(([1-9]\d{0,4}) (minute|hour|day)(s?)\)")
_KEY = re.compile(r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]{1,64}")
# Jars on S3 are single objects, no patterns: the job's role may read just these. All become part of
# a command line.
_JAR = re.compile(r"s3://[a-z0-9][a-z0-9.-]+/[\w./=+@-]+\.jar|/[\w./=+@*-]+\.jar", re.ASCII)


def _require(key: str, value: object, accepts: object) -> None:
    if not accepts:
        raise InvalidInput(key, value, _ACCEPTED[key])


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, dict=True):
    """A table of the file: its values never change, and unknown names are refused."""


class Vpc(_Part, frozen=True):
    """The network of the functions and of EMR Serverless."""

    subnet_ids: tuple[str, ...]
    security_group_ids: tuple[str, ...]

    def __post_init__(self) -> None:
        """Check numbers and forms (botocore: lambda, ``VpcConfig``)."""
        for ids, most, form in (
            (self.subnet_ids, 16, r"subnet-[0-9a-z]{1,32}"),
            (self.security_group_ids, 5, r"sg-([0-9a-f]{8}|[0-9a-f]{17})"),
        ):
            fit = 0 < len(ids) <= most and all(re.fullmatch(form, one) for one in ids)
            _require("vpc", msgspec.to_builtins(self), fit)


class KmsKeys(_Part, frozen=True):
    """KMS keys by what they encrypt."""

    destination: str | None = None
    source: str | None = None
    table: str | None = None

    def __post_init__(self) -> None:
        """Check that each is an ARN."""
        for arn in filter(None, (self.destination, self.source, self.table)):
            _require("kms_key", arn, _KEY.fullmatch(arn))


class Spark(_Part, frozen=True):
    """What takes oversized partitions, upserts, and tables that are maintained by Spark."""

    kind: Literal["serverless", "cluster", "none"] = "serverless"
    cluster_id: str | None = None
    release: str = "emr-spark-8.1.0"
    max_vcpus: int = 64
    architecture: Literal["arm64", "x86_64"] = "arm64"
    python: str = "3.11"
    jars: str | tuple[str, ...] = "bundled"

    def __post_init__(self) -> None:
        """Check what becomes part of a command line or a request."""
        is_cluster = re.fullmatch(r"j-[A-Za-z0-9]{1,64}", self.cluster_id or "") is not None
        fits = is_cluster if self.kind == "cluster" else self.cluster_id is None
        _require("spark.cluster_id", self.cluster_id, fits)
        _require("spark.release", self.release, re.fullmatch(r"emr-[a-z0-9.-]{1,40}", self.release))
        _require("spark.max_vcpus", self.max_vcpus, 4 <= self.max_vcpus <= 4_000)
        _require("spark.python", self.python, re.fullmatch(r"3\.1[1-9]", self.python))
        jars = self.jars
        are_jars = not isinstance(jars, str) and jars and all(map(_JAR.fullmatch, jars))
        _require("spark.jars", jars, jars in ("bundled", "release") or are_jars)

    @property
    def engine(self) -> str:
        """The value of ``spark_engine`` in the input of runs."""
        return {"serverless": "emr_serverless", "none": "none"}.get(
            self.kind, self.cluster_id or ""
        )

    def jars_for(self, formats: tuple[str, ...]) -> tuple[str, ...] | None:
        """Existing jars for tables of these formats; None if the stack uploads its own."""
        if self.jars == "bundled":
            return None
        if isinstance(self.jars, str):
            return tuple(one for name in formats for one in _RELEASE_JARS[name])
        return self.jars


class Events(_Part, frozen=True):
    """Runs that start when enough objects wait, of which S3 tells."""

    seconds: int = 900
    notify: bool = True

    def __post_init__(self) -> None:
        """Check the range."""
        _require("events.seconds", self.seconds, 60 <= self.seconds <= 86_400)

    @property
    def sweep_minutes(self) -> int:
        """Minutes between checks of the registry for objects that are due, from 1 to 5."""
        return max(1, min(5, self.seconds // 180))


class Maintenance(_Part, frozen=True):
    """Tables that others write: a stack of its own, named ``NAME-tables``."""

    locations: tuple[str, ...]
    job: dict[str, Any]
    schedule: str | None = None
    glue_optimizers: tuple[str, ...] = ()
    kms_key: str | None = None

    def __post_init__(self) -> None:
        """Check locations, tables and the input of its runs."""
        _require_schedule("maintenance.schedule", self.schedule)
        _require("maintenance.locations", self.locations, self.locations)
        if self.kms_key is not None and not _KEY.fullmatch(self.kms_key):
            raise InvalidInput("maintenance.kms_key", self.kms_key, "the ARN of a KMS key")
        for uri in self.locations:
            where = S3Uri.parse("maintenance.locations", uri)
            if where.overlaps(self.request.state):
                accepted = "a place that neither contains the state of maintenance nor lies in it"
                raise InvalidInput("maintenance.locations", uri, accepted)
        for text in self.glue_optimizers:
            fits = text.startswith("glue:") and "." in text
            _require("maintenance.glue_optimizers", text, fits)

    @cached_property
    def request(self) -> MaintenanceRequest:
        """The input of its runs, checked."""
        return read_request(self.job)

    @property
    def formats(self) -> tuple[str, ...]:
        """Formats of the tables that its runs may find."""
        request = self.request
        kinds = {DELTA if parse_table(one).kind == DELTA else ICEBERG for one in request.tables}
        kinds |= {ICEBERG} if request.glue_tables else set()
        return tuple(sorted(kinds | ({DELTA} if request.delta_prefixes else set())))


class Deployment(_Part, frozen=True):
    """Everything that a deployment may be told; docs/deployment.md shows the whole file.

    Raises:
        InvalidInput: names the key at fault, its value and what is accepted.
    """

    name: str = "s3-compactor"
    standalone: bool = False
    schedule: str | None = None
    lifecycle: dict[str, int] = msgspec.field(default_factory=lambda: {"intelligent_tiering": 30})
    kms_key: str | KmsKeys | None = None
    encryption: Literal["none", "AES256", "aws:kms"] = "none"
    vpc: Vpc | None = None
    worker_memory_mb: int = WORKER_MB
    table_location_uri: str | None = None
    alarm_email: str | None = None
    spark: Spark = Spark()
    events: Events | None = None
    maintenance: Maintenance | None = None
    job: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        """Check each key by itself, then those that depend on each other."""
        _require("name", self.name, re.fullmatch(r"[a-z][a-z0-9-]{1,30}[a-z0-9]", self.name))
        _require_schedule("schedule", self.schedule)
        if isinstance(self.kms_key, str):
            _require("kms_key", self.kms_key, _KEY.fullmatch(self.kms_key))
        _require("worker_memory_mb", self.worker_memory_mb, 512 <= self.worker_memory_mb <= 10_240)
        if self.alarm_email is not None:
            fits = re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", self.alarm_email)
            _require("alarm_email", self.alarm_email, fits)
        if self.compacts:
            self._require_job()
            self._require_lifecycle()
            self._require_table()
        self._require_jars()

    @property
    def compacts(self) -> bool:
        """True unless the file says nothing but ``[maintenance]`` of what is done."""
        return self.job is not None or self.maintenance is None

    @property
    def keys(self) -> KmsKeys:
        """The KMS keys; a single one is the destination's."""
        key = self.kms_key
        if isinstance(key, str):
            return KmsKeys(destination=key)
        return KmsKeys() if key is None else key

    @cached_property
    def run(self) -> Settings:
        """The input of scheduled runs, checked."""
        given = {
            "s3_source_uri": f"s3://{MADE_SOURCE}/raw/",
            "s3_destination_uri": f"s3://{MADE_DESTINATION}/compacted/",
            **(self.job or {}),
        }
        # Nothing of Spark where nothing can need it.
        alone = self.standalone or given.get("engine") == "worker"
        given["spark_engine"] = "none" if alone else self.spark.engine
        if self.events is not None:
            given["listing"] = f"events:{MADE_REGISTRY}/{self.name}"
        return Settings.from_input(given)

    @property
    def run_input(self) -> dict[str, Any]:
        """The input of a run: its URIs, and the values that differ from FIELDS' defaults."""
        values = self.run.to_dict()
        given = wire_fields(self.job or {})
        names = [name for name in values if name in given or name in _SET_BY]
        shown = dict.fromkeys(("s3_source_uri", "s3_destination_uri", *names))
        return {
            name: values[name]
            for name in shown
            if FIELDS[name].required or values[name] != _plain(FIELDS[name].default)
        }

    @property
    def deletes(self) -> bool:
        """True if clean-up may delete sources."""
        return self.run.deletes

    @property
    def makes_destination(self) -> bool:
        """True if the stack makes the destination's bucket."""
        return self.run.destination.bucket == MADE_DESTINATION

    @property
    def makes_source(self) -> bool:
        """True if the stack makes the source's bucket."""
        return self.run.source.root.bucket == MADE_SOURCE

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
        used = uris[: 1 + bool(self.run.upsert_key)]
        return tuple(S3Uri.parse("table_location_uri", one) for one in used)

    def require_region(self, region: str | None) -> None:
        """Reject what a region lacks, if it is known yet."""
        if region is None:
            return
        uses_spark = self.maintenance is not None or (
            self.compacts and self.run.spark_engine != "none"
        )
        missing = missing_in(region, self.spark.release)
        if uses_spark and self.spark.kind == "serverless" and missing:
            accepted = (
                f'"none" or "cluster" in {region}, which has no {missing}; with job.engine'
                ' "worker", Lambda compacts oversized partitions, too'
            )
            raise InvalidInput("spark.kind", self.spark.kind, accepted)
        tables = self.maintenance.glue_optimizers if self.maintenance is not None else ()
        if tables and optimizers_missing_in(region):
            accepted = f"none in {region}, which has no AWS::Glue::TableOptimizer"
            raise InvalidInput("maintenance.glue_optimizers", list(tables), accepted)

    def _require_job(self) -> None:
        job = self.job or {}
        for name, key in _SET_BY.items():
            if name in job:
                raise InvalidInput(f"job.{name}", job[name], f"nothing: {key} says it")
        if self.standalone:
            for name, value in (("events", self.events), ("job.table", self.run.table)):
                if value is not None:
                    given = msgspec.to_builtins(value)
                    raise InvalidInput(name, given, "nothing with standalone = true")
        address = self.run.table_address
        if address is not None and address.kind != "glue":
            accepted = "glue:DATABASE.TABLE in a deployment; other tables are for compactor run"
            raise InvalidInput("job.table", address.text, accepted)

    def _require_lifecycle(self) -> None:
        lifecycle, run = self.lifecycle, self.run
        known = lifecycle.keys() <= {*CLASSES, EXPIRE}
        fits = known and all(1 <= days <= _MOST_DAYS for days in lifecycle.values())
        _require("lifecycle", lifecycle, fits)
        is_default = lifecycle == {"intelligent_tiering": 30}
        if not self.makes_destination and lifecycle and not is_default:
            accepted = "nothing for a bucket that the stack does not make"
            raise InvalidInput("lifecycle", lifecycle, accepted)
        before = 0
        for name in (one for one in CLASSES if one in lifecycle):
            if lifecycle[name] < before + _DAYS_OF_A_CLASS:
                least = before + _DAYS_OF_A_CLASS
                accepted = f"{name} of at least {least}: 30 days in each class before the next"
                raise InvalidInput("lifecycle", lifecycle, accepted)
            before = lifecycle[name]
        if lifecycle.get(EXPIRE, before + 1) <= before:
            accepted = f"{EXPIRE} of more than the last move to another class, {before} days"
            raise InvalidInput("lifecycle", lifecycle, accepted)
        if run.table is not None or run.reader_table is not None:
            for name in (*_RESTORED_FIRST, EXPIRE):
                if name in lifecycle:
                    accepted = f"no {name} with a table: query engines read outputs at any time"
                    raise InvalidInput("lifecycle", lifecycle, accepted)

    def _require_table(self) -> None:
        uri, run = self.table_location_uri, self.run
        if uri is None:
            return
        if run.table is None:
            raise InvalidInput("table_location_uri", uri, "nothing without job.table")
        places = {"source": run.source.root, "destination": run.destination, "state": run.state}
        for location in self.table_locations:
            for name, place in places.items():
                if location.overlaps(place):
                    accepted = (
                        f"a place that neither contains the {name} {place.uri} nor lies in it"
                    )
                    if location.uri != parse_location(uri).uri:
                        accepted += f", and the keys beside it, {location.uri}, neither"
                    raise InvalidInput("table_location_uri", uri, accepted)

    def _require_jars(self) -> None:
        tables = self.maintenance.request.tables if self.maintenance is not None else ()
        databases = [one for one in tables if parse_table(one).kind == "sql"]
        if databases and self.spark.kind != "none" and isinstance(self.spark.jars, str):
            accepted = f"a list with Iceberg and a JDBC driver: {databases[0]} is in a database"
            raise InvalidInput("spark.jars", self.spark.jars, accepted)


def load(path: Path | None) -> Deployment:
    """Read a deployment's file; without one, the checkout's ``deployment.toml`` if it is there.

    Raises:
        InvalidInput: it cannot be read, or a key is at fault.
    """
    default = REPOSITORY / "deployment.toml"
    if path is None and not default.exists():
        return Deployment()
    try:
        return read(tomllib.loads((path or default).read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise InvalidInput("config", str(path or default), f"a TOML file: {error}") from None


def read(document: Mapping[str, Any]) -> Deployment:
    """Return the deployment that a document describes.

    Raises:
        InvalidInput: names the key at fault, its value and what is accepted.
    """
    try:
        return msgspec.convert(document, Deployment)
    except msgspec.ValidationError as error:
        raise _invalid(document, str(error)) from None


def _invalid(document: Mapping[str, Any], text: str) -> InvalidInput:
    """Return msgspec's finding in our words."""
    message, _, place = text.partition(" - at `$")
    path = re.sub(r"\[[^\]]*\]", "", place.removeprefix(".").rstrip("`"))
    value: Any = document
    for name in filter(None, path.split(".")):
        value = value[name] if isinstance(value, Mapping) and name in value else None
    unknown = re.search(r"unknown field `(.*)`", message)
    if unknown is None:
        return InvalidInput(path, value, _ACCEPTED.get(path, message))
    name = unknown[1]
    names = _names_at(path)
    near = get_close_matches(name, names, n=1)
    accepted = f"no such key; did you mean {near[0]}?" if near else f"one of {', '.join(names)}"
    if not path and name in FIELDS:
        accepted = f"no such key; it is a field of a run: {name} in [job]"
    return InvalidInput(f"{path}.{name}".lstrip("."), value.get(name), accepted)


def _names_at(path: str) -> list[str]:
    parts = {"vpc": Vpc, "kms_key": KmsKeys, "spark": Spark, "events": Events}
    return list(({**parts, "maintenance": Maintenance}).get(path, Deployment).__struct_fields__)


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _require_schedule(key: str, value: str | None) -> None:
    if value is not None:
        rate = _RATE.fullmatch(value)
        fits = rate is not None and (rate[1] == "1") == (rate[3] == "")
        if _CRON.fullmatch(value):
            # The scheduler requires a question mark in exactly one of the two kinds of day.
            days = value.removeprefix("cron(").removesuffix(")").split()
            fits = (days[2] == "?") != (days[4] == "?")
        if not fits:
            raise InvalidInput(key, value, _ACCEPTED["schedule"])
