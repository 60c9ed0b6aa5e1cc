"""Athena as the workflow knows it, on this machine: there is none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from compactor_local.bridges import BridgeError

NO_ATHENA = "NoAthenaHere"


def start_query(parameters: Mapping[str, Any]) -> NoReturn:
    """``athena:startQueryExecution.sync``: always an error, which says what to do instead.

    Raises:
        BridgeError: in any case.
    """
    database = parameters.get("QueryExecutionContext", {}).get("Database", "")
    raise BridgeError(
        NO_ATHENA,
        "Athena is a service of AWS, and this run is on this machine: give the tables of"
        f" {database} the engine spark, or start the deployed state machine"
        " (compactor tables run --stack)",
    )
