"""The smoke test on stand-ins: its lines, each broken answer, its report, its removal."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from compactor_cli.smoke.checks import FAILED, NOT_RUN, OK
from compactor_cli.smoke.session import whole_test
from tests.infrastructure.cloud.running import cloud
from tests.support.smoke_world import Account, engine_on


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """One account for all tests; each leaves it empty."""
    with cloud() as on, engine_on(on, tmp_path_factory.mktemp("engine")) as engine:
        yield Account(on, engine)


def test_the_lines(account: Account) -> None:
    lines: list[str] = []
    code, report = whole_test(account.world(), account.actions(lines.append))
    print(report)
    assert code == 0
