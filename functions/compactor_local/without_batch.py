"""Removes AWS Batch from moto's Step Functions interpreter; no definition here uses it.

moto 5.2.5 imports its Batch for the names of job states, which loads its EC2 with every instance
type of every region: a third of the engine's start time. Import this module before the interpreter.
"""

from __future__ import annotations

import sys
import types
from typing import Any

_PACKAGE, _MODULE = "moto.batch", "moto.batch.utils"


class _AnyStatus(type):
    """Has every attribute; none equals a state of a job."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return f"no status of Batch: {name}"


class JobStatus(metaclass=_AnyStatus):
    """Replaces ``moto.batch.utils.JobStatus``."""


def leave_out_batch() -> None:
    """Replace moto's Batch by empty modules, unless it is loaded already."""
    if _PACKAGE in sys.modules:
        return
    package, module = types.ModuleType(_PACKAGE), types.ModuleType(_MODULE)
    package.__path__ = []
    module.JobStatus = JobStatus  # type: ignore[attr-defined]  # modules accept any attribute
    package.utils = module  # type: ignore[attr-defined]  # as above
    sys.modules |= {_PACKAGE: package, _MODULE: module}


leave_out_batch()
