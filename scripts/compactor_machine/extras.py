"""Optional packages that only some commands need."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from compactor.errors import CompactorError

_PROJECT = "s3-compactor"
# Includes packages of their own extras, which may be missing separately.
_MODULES: Mapping[str, tuple[str, ...]] = {
    "local": ("moto", "flask", "antlr4", "jsonpath_ng", "aws_lambda_powertools"),
    "query": ("duckdb",),
    "rows": ("pyarrow",),
    "lake": ("moto", "flask", "py_partiql_parser", "pyparsing", "pyiceberg", "duckdb"),
}


class ExtraMissing(CompactorError):
    """An extra is not installed; the message says how to install it.

    Args:
        what: what needs it, such as ``the embedded S3``.
        extra: its name in pyproject.toml.
    """

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs more than the base install: {install(extra)}")


def install(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install '{_PROJECT}[{extra}]'"


def require(extra: str, what: str) -> None:
    """Check that an extra is installed, without importing it.

    Raises:
        ExtraMissing: it is not installed.
    """
    if not all(find_spec(module) for module in _MODULES[extra]):
        raise ExtraMissing(what, extra)
