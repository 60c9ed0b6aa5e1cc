"""Whether the library of a table format is installed, and the command that installs an extra."""

from __future__ import annotations

import json
from importlib.util import find_spec
from urllib.parse import unquote, urlsplit

from compactor.errors import InvalidInput

_PROJECT = "s3-compactor"
_MODULES = {"iceberg": "pyiceberg", "delta": "deltalake"}


def require_installed(extra: str, table: str) -> None:
    """Refuse a table whose library is not installed.

    Args:
        extra: the package's extra that includes the library.
        table: its address.

    Raises:
        InvalidInput: it is not installed.
    """
    if find_spec(_MODULES[extra]) is None:
        accepted = f"no table, or more than the base install: {install_command(extra)}"
        raise InvalidInput("table", table, accepted)


def install_command(extra: str) -> str:
    """Return the command that installs an extra, from the wheel that this was installed from."""
    return f"pip install '{_wheel() or _PROJECT}[{extra}]'"


def _wheel() -> str:
    """Return the path of the wheel file; empty if this was installed in another way."""
    from importlib.metadata import (  # noqa: PLC0415 - 30 ms that only such a message pays for
        PackageNotFoundError,
        distribution,
    )

    try:
        origin = json.loads(distribution(_PROJECT).read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        return ""
    url = urlsplit(origin.get("url", ""))
    is_wheel = url.scheme == "file" and url.path.endswith(".whl")
    return unquote(url.path) if is_wheel else ""
