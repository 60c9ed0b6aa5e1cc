"""The local stack of the demonstration and the tests: an embedded S3, and the workflow.

engine.run_workflow           entry point: starts, follows and ends an execution
  engine_process              the process that interprets the definition
    interpreter map_run       patches for what moto's interpreter lacks
    functions                 Lambda: functions by name, a process per slot
    services                  stand-ins for EMR and EMR Serverless
embedded.embedded_s3          an embedded S3: moto's server, seeded within its process
  s3_server                   its process
definition                    the state machine file, and what is filled in
ingest table_reader           the deployment of events, on the embedded services
generate                      test objects
"""

from __future__ import annotations

from typing import Any


class EngineError(Exception):
    """The local stack itself failed; the message says what to do."""


def replace(owner: Any, name: str, part: Any) -> Any:
    """Replace an attribute of a class or module of moto by ``part``; returns the original.

    Raises:
        EngineError: there is no such attribute, as moto is not the pinned version.
    """
    if not hasattr(owner, name):
        raise EngineError(f"{owner.__name__} has no {name}: install the pinned version of moto")
    before = getattr(owner, name)
    setattr(owner, name, part)
    return before
