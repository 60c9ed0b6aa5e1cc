"""The families of the zoo: importing this package fills :func:`tests.zoo.kinds.found`."""

from __future__ import annotations

from tests.zoo.families import (
    applications,
    aws_access,
    aws_json,
    aws_tables,
    binaries,
    databases,
    document_variants,
    documents,
    json_kinds,
    manifests,
    plain_logs,
    spreadsheets,
    syslog,
    web,
)
from tests.zoo.kinds import found

__all__ = ["KINDS"]

_FAMILIES = (
    aws_access,
    aws_json,
    aws_tables,
    web,
    syslog,
    applications,
    plain_logs,
    databases,
    spreadsheets,
    json_kinds,
    manifests,
    documents,
    document_variants,
    binaries,
)
KINDS = found()
