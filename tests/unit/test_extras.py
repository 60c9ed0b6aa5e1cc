"""What is asked for before anything of an extra is started."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from compactor_local.embedded import embedded_s3
from compactor_local.engine import Engine
from compactor_machine import extras


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


def test_nothing_is_imported_to_find_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "moto", raising=False)
    extras.require("local", "the demo")
    assert "moto" not in sys.modules
