"""Where and with what it was measured."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from compactor_dev.benchmark.tools import Tools

_PACKAGES = ("boto3", "obstore", "smart-open", "isal", "msgspec", "moto")
_NUMBER = re.compile(r"\d+(?:\.\d+)+")


def describe(tools: Tools) -> Mapping[str, str]:
    """Processor, memory and versions, by name."""
    return {
        "processors": f"{len(os.sched_getaffinity(0))} x {_field('cpuinfo', 'model name')}",
        "memory": f"{_memory_gib():.0f} GiB",
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": platform.python_version(),
        **{name: _version(name) for name in _PACKAGES},
        **_programs(tools),
    }


def available_bytes() -> int:
    """Memory that could be used now; 0 where the system does not tell."""
    words = _field("meminfo", "MemAvailable").split()
    return int(words[0]) * 1024 if words and words[0].isdigit() else 0


def _programs(tools: Tools) -> dict[str, str]:
    found = {"nginx": _asked(tools, tools.nginx, "-v")}
    if tools.s5cmd is not None:
        found["s5cmd"] = _asked(tools, tools.s5cmd, "version")
    if tools.aws is not None:
        found["aws"] = _asked(tools, tools.aws, "--version")
    return found


def _asked(tools: Tools, program: Path, how: str) -> str:
    done = subprocess.run(
        [str(program), how],
        env=dict(tools.environment),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    number = _NUMBER.search(done.stdout + done.stderr)
    return number[0] if number else "unknown"


def _memory_gib() -> float:
    words = _field("meminfo", "MemTotal").split()
    return int(words[0]) / 1024**2 if words and words[0].isdigit() else 0.0


def _field(source: str, name: str) -> str:
    try:
        text = Path(f"/proc/{source}").read_text(encoding="utf-8")
    except OSError:
        return "unknown"
    found = re.search(rf"^{re.escape(name)}\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else "unknown"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
