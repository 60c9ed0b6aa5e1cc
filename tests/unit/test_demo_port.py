"""``compactor demo --port``: what cannot be listened on is refused before anything starts."""

from __future__ import annotations

import socket

import pytest

from compactor_cli.commands import main
from compactor_cli.failures import EXIT_USAGE


@pytest.mark.parametrize("port", ["-1", "65536"])
def test_a_number_that_is_no_port_is_refused(port, capsys):
    assert main(["demo", f"--port={port}"]) == EXIT_USAGE
    assert "a port from 1 to 65,535" in capsys.readouterr().err


def test_a_port_that_is_taken_is_refused_by_its_number(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["demo", "--port", str(port)]) == EXIT_USAGE
    assert f"--port: {port} is not accepted" in capsys.readouterr().err
