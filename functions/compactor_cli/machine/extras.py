"""Optional packages that only some commands need."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from compactor.errors import CompactorError
from compactor.table_formats.installed import install_command

# Includes packages of their own extras, which may be missing separately.
_MODULES: Mapping[str, tuple[str, ...]] = {
    "local": ("moto", "flask", "antlr4", "jsonpath_ng", "aws_lambda_powertools"),
    "query": ("duckdb",),
    "rows": ("pyarrow",),
    "iceberg": ("pyiceberg", "pyarrow"),
    "delta": ("deltalake", "pyarrow"),
    "lake": ("moto", "flask", "py_partiql_parser", "pyparsing", "pyiceberg", "duckdb"),
}


# Which extra brings a package, and for one that none brings, what to install.
_EXTRA_OF: Mapping[str, str] = {
    "aws_lambda_powertools": "lambda",
    "deltalake": "delta",
    "duckdb": "query",
    "moto": "local",
    "pyarrow": "rows",
    "pyiceberg": "iceberg",
    "pyspark": "spark",
}
_PACKAGE_OF = {"sqlalchemy": "pyiceberg[sql-sqlite]"}


class ExtraMissing(CompactorError):
    """An extra is not installed; the message says how to install it.

    Args:
        what: what needs it, such as ``the embedded S3``.
        extra: its name in pyproject.toml.
    """

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs more than the base install: {install_command(extra)}")


def is_installed(extra: str) -> bool:
    """Return whether the packages of an extra are installed, without importing them."""
    return all(find_spec(module) for module in _MODULES[extra])


def require(extra: str, what: str) -> None:
    """Check that an extra is installed, without importing it.

    Raises:
        ExtraMissing: it is not installed.
    """
    if not is_installed(extra):
        raise ExtraMissing(what, extra)


def missing(error: Exception) -> Exception:
    """Return the error for an optional package that is not installed; else the error itself."""
    # pyiceberg has an error of its own for a package that a catalog needs.
    is_own = type(error).__name__ == "NotInstalledError"
    absent = error.__context__ if is_own else error
    if not isinstance(absent, ImportError):
        return error
    name = (absent.name or "").partition(".")[0]
    if extra := _EXTRA_OF.get(name):
        return ExtraMissing(f"what uses {name}", extra)
    if package := _PACKAGE_OF.get(name):
        return CompactorError(f"{name} is not installed: pip install '{package}'")
    return error
