"""The table of differences names what there is, and real servers end with their callers."""

from __future__ import annotations

import importlib
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.contract.cases import ODD_KEYS
from tests.support.real_servers import REAL_SERVERS, Unavailable, real_server
from tests.support.server_differences import (
    DIFFERENCES,
    strict,
)

_HERE = Path(__file__).parent
_STARTER = """
from tests.support.real_servers import real_server
with real_server("versitygw") as server:
    print(server.endpoint_url, flush=True)
    input()
"""


def test_every_case_that_must_fail_is_a_test_and_is_named_once() -> None:
    modules = [
        importlib.import_module(f"tests.contract.{path.stem}") for path in _HERE.glob("test_*.py")
    ]
    names = {name for module in modules for name in vars(module) if name.startswith("test_")}
    named = [(one.server, case) for one in DIFFERENCES for case in one.cases]
    assert Counter(named).most_common(1)[0][1] == 1
    for _, case in named:
        name, _, parameter = case.partition("[")
        assert name in names
        alone = parameter.removeprefix("botocore-").rstrip("]")
        assert not parameter or alone in {*ODD_KEYS, "0"}


@pytest.mark.parametrize("name", REAL_SERVERS)
def test_a_real_server_shows_what_it_honours(name: str) -> None:
    try:
        with real_server(name) as server:
            assert (server.name, server.strict) == (name, strict(name))
            _connect(server.endpoint_url).close()
    except Unavailable as reason:
        pytest.skip(f"{name}: {reason}")
    with pytest.raises(ConnectionRefusedError):
        _connect(server.endpoint_url)


def test_a_real_server_ends_with_its_caller_even_if_that_was_killed() -> None:
    starter = subprocess.Popen(
        [sys.executable, "-c", _STARTER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert starter.stdout is not None
    url = starter.stdout.readline().strip()
    starter.kill()
    _, said = starter.communicate()
    if "Unavailable" in said:
        pytest.skip(said.splitlines()[-1])
    assert _ends(url)


def _ends(url: str) -> bool:
    """Waits until nobody listens there any more, or for a minute."""
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up:
        try:
            _connect(url).close()
        except (ConnectionRefusedError, ConnectionResetError):
            # Reset: it ended while the connection waited to be accepted.
            return True
        time.sleep(0.1)
    return False


def _connect(url: str) -> socket.socket:
    place = urlsplit(url)
    return socket.create_connection((place.hostname, place.port), timeout=60)
