"""What the server itself can deliver, asked by a plain load generator."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from compactor.errors import TransientStoreError
from compactor_dev.benchmark.tools import Tools

_SECONDS = 4
# Enough for 10,000 GETs a second at 25 ms each.
CONNECTIONS = 256
_LONGEST_LIST = 20_000
_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}
_RATE = re.compile(r"Requests/sec:\s+([\d.]+)")
_TRANSFER = re.compile(r"Transfer/sec:\s+([\d.]+)([KMG]?)B")
_FAILED = re.compile(r"Non-2xx or 3xx responses:\s+(\d+)")
# Each thread of wrk asks for the keys in order, as a client does.
_SCRIPT = """
local paths = {}
for line in io.lines("%s") do paths[#paths + 1] = line end
local place = 0
request = function()
  place = place %% #paths + 1
  return wrk.format("GET", paths[place])
end
"""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What came through: GETs a second and bytes a second."""

    gets_per_second: float
    bytes_per_second: float


def parse(said: str) -> Ceiling:
    """What wrk's report says.

    Raises:
        TransientStoreError: it is no such report, or requests failed.
    """
    rate, transfer, failed = (one.search(said) for one in (_RATE, _TRANSFER, _FAILED))
    if rate is None or transfer is None or failed is not None:
        raise TransientStoreError(f"wrk: {' '.join(said.split())[-200:]}")
    return Ceiling(float(rate[1]), float(transfer[1]) * _UNITS[transfer[2]])


def ceiling(
    tools: Tools, directory: Path, endpoint_url: str, bucket: str, keys: Sequence[str]
) -> Ceiling:
    """GET the keys in turn over many connections for a few seconds.

    Raises:
        TransientStoreError: the server did not answer every request with the object.
    """
    paths, script = directory / "paths.txt", directory / "paths.lua"
    paths.write_text("".join(f"/{bucket}/{key}\n" for key in keys[:_LONGEST_LIST]), "utf-8")
    script.write_text(_SCRIPT % paths, encoding="utf-8")
    command = [tools.wrk, "-t1", f"-c{CONNECTIONS}", f"-d{_SECONDS}s", "-s", script, endpoint_url]
    environment: Mapping[str, str] = tools.environment
    done = subprocess.run(
        [str(word) for word in command],
        env=dict(environment),
        capture_output=True,
        text=True,
        check=False,
        timeout=10 * _SECONDS,
    )
    return parse(done.stdout if not done.returncode else done.stderr)
