"""The local stand-in for Athena, which does not exist here: every query fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from compactor_local.bridges import BridgeError

NO_ATHENA = "NoAthenaHere"


def start_query(parameters: Mapping[str, Any]) -> NoReturn:
    """``athena:startQueryExecution.sync``: always fails with an error that says what to do instead.

    Raises:
        BridgeError: in any case.
    """
    database = parameters.get("QueryExecutionContext", {}).get("Database", "")
    raise BridgeError(
        NO_ATHENA,
        f"Athena is only on AWS, and this run is local: set the engine of the tables of {database}"
        " to spark, or start the deployed state machine (compactor tables run --stack)",
    )
