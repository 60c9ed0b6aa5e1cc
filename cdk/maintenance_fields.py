"""The keys of maintenance, and the checks that they fit together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cdk.readers import (
    BUNDLED,
    GLUE_TABLES,
    LOCATIONS,
    MAINTENANCE,
    RELEASE,
    SCHEDULE,
    or_null,
)
from compactor.errors import InvalidInput
from compactor.settings.settings import Settings
from compactor.settings.specs import FieldSpec
from compactor.settings.tables import parse_table
from compactor.settings.uris import S3Uri
from compactor_tables.measures import DELTA, ICEBERG
from compactor_tables.request import MaintenanceRequest, read_request

_MAINTENANCE = "Tables that others write"
#: The mode that only maintains tables and compacts nothing.
ALONE = "maintenance"
# The keys that this mode accepts; all others concern compaction.
_KEYS_ALONE = frozenset(
    {
        "name",
        "mode",
        "s3_state_uri",
        "kms_keys",
        "encryption",
        "schedule_time_zone",
        "maintenance",
        "maintenance_locations",
        "maintenance_schedule",
        "glue_optimizers",
        "architecture",
        "vpc",
        "spark_engine",
        "spark_python",
        "spark_jars",
        "emr_release_label",
        "emr_serverless_max_vcpus",
        "alarm_email",
        "log_retention_days",
    }
)

#: The keys of maintenance, in the order in which they are documented.
MAINTENANCE_FIELDS: Sequence[FieldSpec] = (
    FieldSpec(
        "maintenance",
        _MAINTENANCE,
        None,
        or_null(MAINTENANCE),
        "Which tables are maintained, and how. It creates the second state machine, NAME-tables,"
        " and is the input of its scheduled runs.",
    ),
    FieldSpec(
        "maintenance_locations",
        _MAINTENANCE,
        (),
        LOCATIONS,
        "Where these tables are. Roles of maintenance may read, write and delete there, and"
        " nowhere else.",
    ),
    FieldSpec(
        "maintenance_schedule",
        _MAINTENANCE,
        None,
        or_null(SCHEDULE),
        "When maintenance runs, in schedule_time_zone. null: only when you start it. Set it once"
        " you have seen a run succeed.",
    ),
    FieldSpec(
        "glue_optimizers",
        _MAINTENANCE,
        (),
        GLUE_TABLES,
        "Tables for which the stack configures Glue's optimizers (compaction, retention, orphan"
        " files), by the first rule of maintenance that matches.",
    ),
)


def check_keys(given: Mapping[str, Any]) -> None:
    """Check the keys of a deployment that only maintains tables.

    Raises:
        InvalidInput: a key concerns compaction, or a required one is missing.
    """
    for name, value in given.items():
        if name not in _KEYS_ALONE:
            raise InvalidInput(name, value, f'no key of compaction with mode "{ALONE}"')
    if given.get("s3_state_uri") is None:
        accepted = f'where runs and reports go with mode "{ALONE}", such as s3://lake/_maintenance/'
        raise InvalidInput("s3_state_uri", None, accepted)
    if given.get("maintenance") is None:
        accepted = f'which tables are maintained with mode "{ALONE}" (docs/maintenance.md)'
        raise InvalidInput("maintenance", None, accepted)
    if given.get("spark_engine") == "emr":
        accepted = (
            '"emr_serverless", "none", or the id of a running cluster: none is made for tables'
        )
        raise InvalidInput("spark_engine", "emr", accepted)


def tables_request(given: Mapping[str, Any] | None, run: Settings) -> MaintenanceRequest | None:
    """Return the request of a maintenance run; None without maintenance."""
    return None if given is None else read_request({**given, "s3_state_uri": run.s3_state_uri})


def tables_spark(run: Settings) -> str:
    """Return where Spark maintains tables; clusters are never created for this."""
    if run.spark_engine.startswith("j-"):
        return "cluster"
    return "none" if run.spark_engine == "emr" else run.spark_engine


def table_engines(run: Settings) -> list[str]:
    """Return the engines that can maintain tables."""
    return [*(["spark"] if tables_spark(run) != "none" else []), "athena"]


def formats_of(request: MaintenanceRequest | None) -> set[str]:
    """Return the formats of the tables that a request may find: ``iceberg``, ``delta``."""
    if request is None:
        return set()
    kinds = {DELTA if parse_table(one).kind == DELTA else ICEBERG for one in request.tables}
    kinds |= {ICEBERG} if request.glue_tables else set()
    return kinds | ({DELTA} if request.delta_prefixes else set())


def check_jars(request: MaintenanceRequest | None, jars: str | tuple[str, ...], spark: str) -> None:
    """Check that there are jars for the maintained tables.

    Args:
        request: the request of maintenance.
        jars: the key ``spark_jars``.
        spark: the result of :func:`tables_spark`.

    Raises:
        InvalidInput: names ``spark_jars``.
    """
    addresses = [] if request is None else [parse_table(one) for one in request.tables]
    databases = [one.text for one in addresses if one.kind == "sql"]
    if databases and spark != "none" and jars in (BUNDLED, RELEASE):
        accepted = (
            f"a list that has a JDBC driver beside Iceberg: the catalog of {databases[0]} is a"
            " database, and neither this version nor the EMR release brings its driver"
        )
        raise InvalidInput("spark_jars", jars, accepted)


def check_locations(
    maintenance: Mapping[str, Any] | None,
    locations: Sequence[str],
    places: Mapping[str, S3Uri],
    *,
    optimizers: Sequence[str],
) -> None:
    """Check the locations of maintained tables.

    Args:
        maintenance: the key ``maintenance``.
        locations: the key ``maintenance_locations``.
        places: locations of the run by name, which no table may overlap.
        optimizers: the key ``glue_optimizers``.

    Raises:
        InvalidInput: names the key at fault.
    """
    if maintenance is None:
        # Both keys need its rules and roles.
        for name, given in (("maintenance_locations", locations), ("glue_optimizers", optimizers)):
            if given:
                raise InvalidInput(name, list(given), "none without maintenance")
        return
    if not locations:
        accepted = 'where the maintained tables lie, such as ["s3://lake/bronze/"]'
        raise InvalidInput("maintenance_locations", [], accepted)
    for uri in locations:
        where = S3Uri.parse("maintenance_locations", uri)
        for name, place in places.items():
            if where.overlaps(place):
                accepted = f"a place that neither contains the {name} nor lies in it"
                raise InvalidInput("maintenance_locations", uri, accepted)
