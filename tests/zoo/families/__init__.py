"""The kinds of the zoo, by family."""

from __future__ import annotations

from tests.zoo.families import (
    applications,
    aws_access,
    aws_json,
    aws_tables,
    databases,
    json_kinds,
    left_alone,
    plain_logs,
    spreadsheets,
    syslog,
    web,
)

FAMILIES = (
    applications,
    aws_access,
    aws_json,
    aws_tables,
    databases,
    json_kinds,
    left_alone,
    plain_logs,
    spreadsheets,
    syslog,
    web,
)
KINDS = {kind.name: kind for family in FAMILIES for kind in family.KINDS}
