"""Paths of this application's files, in a checkout or an installed wheel."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

_PACKAGES = (
    "compactor",
    "compactor_handlers",
    "compactor_cli",
    "compactor_local",
    "compactor_spark",
    "compactor_tables",
)


def package_directory(name: str) -> Path:
    """Return the directory of one of our packages, without importing it.

    Raises:
        ModuleNotFoundError: it is not installed.
    """
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(name, name=name)
    return Path(spec.origin).resolve().parent


def import_roots() -> tuple[str, ...]:
    """Return the ``PYTHONPATH`` entries for importing all packages, without duplicates."""
    return tuple(dict.fromkeys(str(package_directory(name).parent) for name in _PACKAGES))


def definition(name: str = "compaction.asl.json") -> Path:
    """Return the path of a state machine's definition; a wheel has it in compactor_local."""
    stack = package_directory("compactor_local")
    shipped = stack / name
    return shipped if shipped.exists() else stack.parents[1] / "statemachine" / name


def spark_script(name: str = "compact_partitions.py") -> Path:
    """Return the path of a script for spark-submit."""
    return package_directory("compactor_spark") / name
