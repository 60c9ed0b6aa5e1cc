"""Leaves AWS Batch out of moto's Step Functions interpreter, which no definition here uses.

moto 5.2.5 asks its Batch for the names of what a job can come to, and that loads its EC2 with
every machine type of every region: a third of the time an engine takes to start. Import this
module before the interpreter.
"""

from __future__ import annotations

import sys
import types
from typing import Any

_PACKAGE, _MODULE = "moto.batch", "moto.batch.utils"


class _AnyStatus(type):
    """Has every name that is asked for; none of them is what a job came to."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return f"no status of Batch: {name}"


class JobStatus(metaclass=_AnyStatus):
    """In the place of ``moto.batch.utils.JobStatus``."""


def leave_out_batch() -> None:
    """Put empty modules in the place of moto's Batch, where it is not loaded already."""
    if _PACKAGE in sys.modules:
        return
    package, module = types.ModuleType(_PACKAGE), types.ModuleType(_MODULE)
    package.__path__ = []
    module.JobStatus = JobStatus  # type: ignore[attr-defined]  # a module is a namespace
    package.utils = module  # type: ignore[attr-defined]  # likewise, a namespace
    sys.modules |= {_PACKAGE: package, _MODULE: module}


leave_out_batch()
