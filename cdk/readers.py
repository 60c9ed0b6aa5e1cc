"""Parsers and checks for deployment keys of types that the fields of a run do not have."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from zoneinfo import available_timezones

from compactor.errors import InvalidInput
from compactor.settings.specs import FieldSpec, Reader, matching, names, whole
from compactor.settings.tables import parse_table
from compactor.settings.uris import URI_ACCEPTED, parse_location
from compactor_tables.request import read_request

_CRON = re.compile(r"cron\(\S+( \S+){5}\)")
_RATE = re.compile(r"rate\(([1-9]\d{0,4}) (minute|hour|day)(s?)\)")
# CloudWatch alarms look back a week at most.
_MOST_ALARM_HOURS = 168
_HOURS_OF_DAILY = 48
_MINUTES = {"minute": 1, "hour": 60, "day": 1440}
# Jars on S3 must be single objects, no patterns: the job's role may read just these.
_JAR = re.compile(r"s3://[a-z0-9][a-z0-9.-]+/[\w./=+@-]+\.jar|/[\w./=+@*-]+\.jar", re.ASCII)
_SCHEDULE_ACCEPTED = (
    "cron(minutes hours day-of-month month day-of-week year) or rate(number unit), such as"
    " cron(0 3 * * ? *) or rate(6 hours)"
)
# What CloudWatch Logs accepts, up to ten years.
_LOG_DAYS = (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1827, 2192, 2557)
_KMS_KEY = matching(
    r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]{1,64}",
    "the ARN of a KMS key, such as arn:aws:kms:us-east-1:123456789012:key/1234abcd-…",
)
#: What may have its own KMS key.
DESTINATION, SOURCE = "destination", "source"
TABLE, MAINTAINED = "table", "maintenance"
_ENCRYPTED = (DESTINATION, SOURCE, TABLE, MAINTAINED)
_INSTANCE = matching(r"[a-z][a-z0-9-]*\.[a-z0-9]+", "an EC2 instance type, such as m6g.xlarge")
_SUBNET = matching(r"subnet-[0-9a-z]{1,32}", "the id of a subnet, such as subnet-0123456789abcdef0")
_SECURITY_GROUP = matching(r"sg-([0-9a-f]{8}|[0-9a-f]{17})", "the id of a security group")

#: Values of spark_jars other than a list: where the jars come from.
BUNDLED, RELEASE = "bundled", "release"


#: Storage classes that outputs may move to, the warmest first.
CLASSES = ("standard_ia", "intelligent_tiering", "glacier_ir", "glacier", "deep_archive")
#: Classes whose objects must be restored before S3 answers a GET.
RESTORED_FIRST = ("glacier", "deep_archive")
#: The entry of a lifecycle after which outputs are deleted.
EXPIRE = "expire"


def alarm_hours(schedule: str) -> int | None:
    """Return after how many hours without a run the alarm of a schedule is raised.

    This is two periods of a ``rate(…)``, two days for a ``cron(…)`` that is daily or more often, a
    week for one by days of the week. None if runs are less than weekly: CloudWatch looks back no
    further.
    """
    match = _RATE.fullmatch(schedule)
    if match is None:
        return _hours_of_cron(*schedule.removeprefix("cron(").removesuffix(")").split())
    minutes = int(match[1]) * _MINUTES[match[2]]
    if minutes > _MOST_ALARM_HOURS * 60:
        return None
    return max(2, min(-(-2 * minutes // 60), _MOST_ALARM_HOURS))


def _hours_of_cron(
    _minutes: str, _hours: str, days: str, months: str, weekdays: str, years: str
) -> int | None:
    if (months, years) != ("*", "*") or days not in ("*", "?"):
        return None
    if weekdays in ("*", "?"):
        return _HOURS_OF_DAILY
    # 2#1 is the first Monday of a month, 6L its last Friday.
    return None if "#" in weekdays or "L" in weekdays else _MOST_ALARM_HOURS


def _schedule(value: object) -> str:
    if isinstance(value, str):
        rate = _RATE.fullmatch(value)
        if rate and (rate[1] == "1") == (rate[3] == ""):
            return value
        if _CRON.fullmatch(value) and _one_day_is_open(value):
            return value
    raise ValueError


def _one_day_is_open(cron: str) -> bool:
    # The scheduler requires a question mark in exactly one of day-of-month and day-of-week.
    fields = cron.removeprefix("cron(").removesuffix(")").split()
    return (fields[2] == "?") != (fields[4] == "?")


def _time_zone(value: object) -> str:
    if isinstance(value, str) and (value == "UTC" or value in available_timezones()):
        return value
    raise ValueError


def _e_mail(value: object) -> str:
    if isinstance(value, str) and re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", value):
        return value
    raise ValueError


def _log_days(value: object) -> int:
    if type(value) is int and value in _LOG_DAYS:
        return value
    raise ValueError


def _jars(value: object) -> str | tuple[str, ...]:
    if isinstance(value, str) and value in (BUNDLED, RELEASE):
        return value
    if isinstance(value, list | tuple) and value and all(_is_jar(one) for one in value):
        return tuple(value)
    raise ValueError


def _is_jar(value: object) -> bool:
    # Jars become part of a command line in the definition of the state machine.
    return isinstance(value, str) and bool(_JAR.fullmatch(value))


def or_null(reader: Reader) -> Reader:
    """Return a reader that also accepts null."""

    def read(value: object) -> object:
        return None if value is None else reader.read(value)

    return Reader(f"{reader.accepted}, or null", read)


def _locations(value: object) -> tuple[str, ...]:
    uris = names().read(value)
    assert isinstance(uris, tuple)  # noqa: S101 - what names() reads
    return tuple(parse_location(one).uri for one in uris)


def _glue_tables(value: object) -> tuple[str, ...]:
    addresses = names().read(value)
    assert isinstance(addresses, tuple)  # noqa: S101 - what names() reads
    tables = [parse_table(one) for one in addresses]
    if any(one.kind != "glue" for one in tables):
        raise ValueError
    return tuple(one.text for one in tables)


def _kms_keys(value: object) -> Mapping[str, object]:
    if isinstance(value, str):
        return {DESTINATION: _KMS_KEY.read(value)}
    if not isinstance(value, Mapping) or not value.keys() <= {*_ENCRYPTED}:
        raise ValueError
    return {name: _KMS_KEY.read(arn) for name, arn in value.items()}


@dataclass(frozen=True, slots=True)
class EmrCluster:
    """The cluster that a run creates.

    Attributes:
        subnet_id: id of its subnet.
        instance_type: instance type of each node; None for the architecture's default.
        core_instances: number of core nodes, in addition to the primary node.
    """

    subnet_id: str
    instance_type: str | None = None
    core_instances: int = 2


def _emr_cluster(value: object) -> EmrCluster:
    given = {"subnet_id": value} if isinstance(value, str) else value
    if not isinstance(given, Mapping) or not {"subnet_id"} <= given.keys() <= {*_OF_A_CLUSTER}:
        raise ValueError
    return EmrCluster(**{name: _OF_A_CLUSTER[name].read(one) for name, one in given.items()})


@dataclass(frozen=True, slots=True)
class Vpc:
    """The network of the functions and of EMR Serverless.

    Attributes:
        subnet_ids: ids of its subnets.
        security_group_ids: ids of the security groups.
    """

    subnet_ids: tuple[str, ...]
    security_group_ids: tuple[str, ...]


def _vpc(value: object) -> Vpc:
    if not isinstance(value, Mapping) or value.keys() != _OF_A_VPC.keys():
        raise ValueError
    ids: dict[str, tuple[str, ...]] = {}
    for name, (accepted, most) in _OF_A_VPC.items():
        given = names().read(value[name])
        if not isinstance(given, tuple) or not 0 < len(given) <= most:
            raise ValueError
        ids[name] = tuple(str(accepted.read(one)) for one in given)
    return Vpc(**ids)


def _lifecycle(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping) or not value.keys() <= {*CLASSES, EXPIRE}:
        raise ValueError
    return {name: DAYS.read(days) for name, days in value.items()}


def _maintenance(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or "s3_state_uri" in value:
        raise ValueError
    try:
        read_request({**value, "s3_state_uri": "s3://not-used/here/"})
    except InvalidInput as error:
        raise ValueError(str(error)) from None
    return value


LOCATIONS = Reader('a list of S3 URIs such as ["s3://lake/bronze/"]', _locations)
GLUE_TABLES = Reader('a list of tables such as ["glue:bronze.events"]', _glue_tables)
MAINTENANCE = Reader(
    "an object with the fields of a maintenance run but s3_state_uri (docs/maintenance.md)",
    _maintenance,
)
DAYS = whole(1, 36_500)
# Of both services' "VpcConfig" and "NetworkConfiguration" (botocore: lambda, emr-serverless).
_OF_A_VPC: Mapping[str, tuple[Any, int]] = {
    "subnet_ids": (_SUBNET, 16),
    "security_group_ids": (_SECURITY_GROUP, 5),
}
_OF_A_CLUSTER: Mapping[str, Any] = {
    "subnet_id": _SUBNET,
    "instance_type": _INSTANCE,
    "core_instances": whole(1, 1_000),
}
EMR_CLUSTER = Reader(
    f'{_SUBNET.accepted}, or an object such as {{"subnet_id": "subnet-0123456789abcdef0",'
    ' "instance_type": "m6g.2xlarge", "core_instances": 4}',
    _emr_cluster,
)
VPC = Reader(
    'an object such as {"subnet_ids": ["subnet-0123456789abcdef0"], "security_group_ids":'
    ' ["sg-0123456789abcdef0"]}, with at most 16 and 5',
    _vpc,
)
KMS_KEYS = Reader(
    f"{_KMS_KEY.accepted}, or an object of them by {', '.join(_ENCRYPTED)}",
    _kms_keys,
)
LIFECYCLE = Reader(
    'days by storage class and expire, such as {"standard_ia": 30, "glacier_ir": 90, "expire":'
    f" 3650}}; the classes are {', '.join(CLASSES)}",
    _lifecycle,
)
LOCATION = Reader(URI_ACCEPTED, lambda value: parse_location(value).uri)
SCHEDULE = Reader(_SCHEDULE_ACCEPTED, _schedule)
TIME_ZONE = Reader("a name of the IANA time zone database, such as Europe/Berlin", _time_zone)
E_MAIL = Reader("an e-mail address", _e_mail)
JARS = Reader(
    f'"{BUNDLED}", "{RELEASE}", or a list of jars, each s3://bucket/key.jar or, on the machines'
    " themselves, /path/name.jar",
    _jars,
)
LOG_DAYS = Reader(f"one of {', '.join(map(str, _LOG_DAYS))}", _log_days)


def read_key(spec: FieldSpec, value: object) -> object:
    """Return the checked value of a key; text may be JSON, because ``-c`` only passes text.

    Raises:
        InvalidInput: the value is not accepted.
    """
    if isinstance(value, str) and not _accepts(spec, value):
        try:
            return spec.parse(json.loads(value))
        except json.JSONDecodeError:
            pass
    return spec.parse(value)


def _accepts(spec: FieldSpec, value: str) -> bool:
    try:
        spec.reader.read(value)
    except ValueError:
        return False
    return True
