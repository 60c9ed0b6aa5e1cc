"""Whether the library of a table format is installed."""

from __future__ import annotations

from importlib.util import find_spec

from compactor.errors import InvalidInput

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
        accepted = f"no table, or more than the base install: pip install 's3-compactor[{extra}]'"
        raise InvalidInput("table", table, accepted)
