"""What not every command needs, and so is not part of the base install."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from compactor.errors import CompactorError

_PROJECT = "s3-compactor"
# A package may be there without what its own extras bring.
_MODULES: Mapping[str, tuple[str, ...]] = {
    "local": ("moto", "flask", "antlr4", "jsonpath_ng", "aws_lambda_powertools"),
    "query": ("duckdb",),
    "lake": ("moto", "flask", "py_partiql_parser", "pyparsing", "pyiceberg", "duckdb"),
}


class ExtraMissing(CompactorError):
    """An extra is not installed; says how it is.

    Args:
        what: for what it is needed, such as ``the embedded S3``.
        extra: its name in pyproject.toml.
    """

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs more than the base install: {install(extra)}")


def install(extra: str) -> str:
    """The command that installs an extra."""
    return f"pip install '{_PROJECT}[{extra}]'"


def require(extra: str, what: str) -> None:
    """Do nothing when an extra can be found; nothing of it is imported.

    Raises:
        ExtraMissing: it is not installed.
    """
    if not all(find_spec(module) for module in _MODULES[extra]):
        raise ExtraMissing(what, extra)
