"""What not every command needs, and so is not part of the base install."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from compactor.errors import CompactorError

_PROJECT = "s3-compactor"
# A package may be there without what its own extras bring.
_MODULES: Mapping[str, tuple[str, ...]] = {
    "local": ("moto", "flask", "antlr4", "jsonpath_ng", "aws_lambda_powertools"),
    "spark": ("pyspark",),
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


def is_installed(extra: str) -> bool:
    """True when all that an extra is for can be found; nothing of it is imported."""
    return all(find_spec(module) for module in _MODULES[extra])


def require(extra: str, what: str) -> None:
    """Do nothing when an extra is installed.

    Raises:
        ExtraMissing: it is not.
    """
    if not is_installed(extra):
        raise ExtraMissing(what, extra)
