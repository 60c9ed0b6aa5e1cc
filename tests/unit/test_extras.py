"""What is asked for before anything of an extra is started."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import pytest

from compactor_cli.whole import Machine, run_here
from compactor_local.embedded import embedded_s3
from compactor_local.engine import Engine
from compactor_machine import extras
from tests.support.examples import settings


@pytest.mark.parametrize("absent", ["moto", "flask", "antlr4", "aws_lambda_powertools"])
def test_nothing_is_started_when_a_part_of_an_extra_is_missing(
    absent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == absent else find(name))
    told = r"pip install 's3-compactor\[local\]'$"
    with pytest.raises(extras.ExtraMissing, match=told), embedded_s3():
        pass
    with pytest.raises(extras.ExtraMissing, match=told), Engine():
        pass


@pytest.mark.parametrize("given", [{"output_format": "parquet"}, {"format": "parquet"}])
def test_a_run_with_rows_asks_for_arrow_before_its_first_request(
    given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "pyarrow" else find(name))
    nowhere = Machine(1, "http://127.0.0.1:1")
    with pytest.raises(extras.ExtraMissing, match=r"pip install 's3-compactor\[rows\]'$"):
        run_here(settings(**given), nowhere)


def test_nothing_is_imported_to_find_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "moto", raising=False)
    extras.require("local", "the demo")
    assert "moto" not in sys.modules
