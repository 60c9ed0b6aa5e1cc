"""Where this application's own files are: in a checkout, or where a wheel was installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

_PACKAGES = (
    "compactor",
    "compactor_handlers",
    "compactor_cli",
    "compactor_local",
    "compactor_machine",
    "compactor_spark",
    "compactor_tables",
)


def package_directory(name: str) -> Path:
    """The directory of a package of ours, without importing it.

    Raises:
        ModuleNotFoundError: it is not installed.
    """
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(name, name=name)
    return Path(spec.origin).resolve().parent


def import_roots() -> tuple[str, ...]:
    """What other processes need on ``PYTHONPATH`` to import all packages; no entry twice."""
    return tuple(dict.fromkeys(str(package_directory(name).parent) for name in _PACKAGES))


def definition(name: str = "compaction.asl.json") -> Path:
    """A state machine's definition: in a wheel beside the local stack, which interprets it."""
    stack = package_directory("compactor_local")
    shipped = stack / name
    return shipped if shipped.exists() else stack.parents[1] / "statemachine" / name


def spark_script(name: str = "compact_partitions.py") -> Path:
    """What spark-submit is given: a script of the Spark job."""
    return package_directory("compactor_spark") / name
