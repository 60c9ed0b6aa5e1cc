"""Numbers of one table have it as a dimension, in the deployment's namespace."""

from __future__ import annotations

import json

import pytest

from compactor.invocation import NAMESPACE, SERVICE
from compactor_tables.handlers.runtime import table_metric


def test_a_number_of_a_table_is_found_by_the_tables_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    table_metric("glue:bronze.events", "TableFiles", 42)

    told = json.loads(capsys.readouterr().out)
    (metric,) = told["_aws"]["CloudWatchMetrics"]
    assert metric["Namespace"] == NAMESPACE
    assert {*metric["Dimensions"][0]} == {"service", "table"}
    assert (told["service"], told["table"], told["TableFiles"]) == (
        SERVICE,
        "glue:bronze.events",
        [42],
    )
