"""What moto's other services lack to stand in for AWS's where order and conflicts count.

moto 5.2.5 sends S3's notifications without a sequencer, by which a reader orders the events of a
key (`notification content structure
<https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html>`_), and
its Glue takes an ``UpdateTable`` whose ``VersionId`` is no longer the table's, which loses the
other writer's commit.
"""

from __future__ import annotations

import itertools
import threading
import time
from typing import Any

from moto.core.exceptions import JsonRESTError
from moto.s3 import notifications

from compactor_cli.local.patching import replace

_CREATED = "ObjectCreated:"
_REMOVED = "ObjectRemoved:"


class _Sequencer:
    """Hexadecimal numbers of one length, each larger than all before."""

    def __init__(self) -> None:
        self._numbers = itertools.count(time.time_ns())

    def next(self) -> str:
        return f"{next(self._numbers):018X}"


def install() -> None:
    """Apply the patches to this process's moto."""
    _install_sequencer()
    _install_versions()


def _install_sequencer() -> None:
    sequencer = _Sequencer()

    def event(name: str, bucket: Any, key: Any, notification_id: str) -> dict[str, Any]:
        made: dict[str, Any] = before(name, bucket, key, notification_id)
        for record in made["Records"]:
            if record["eventName"].startswith((_CREATED, _REMOVED)):
                told = record["s3"]["object"]
                told["sequencer"] = sequencer.next()
                if record["eventName"].startswith(_REMOVED):
                    # S3 tells neither of what is gone.
                    del told["size"], told["eTag"]
        return made

    before = replace(notifications, "_get_s3_event", event)


def _install_versions() -> None:
    # Only a process that serves Glue has what it needs.
    from moto.glue.responses import GlueResponse  # noqa: PLC0415

    updating = threading.Lock()

    def update_table(response: Any) -> Any:
        with updating:
            wanted = response.parameters.get("VersionId")
            if wanted is not None:
                _require_version(response, str(wanted))
            return before(response)

    before = replace(GlueResponse, "update_table", update_table)


def _require_version(response: Any, wanted: str) -> None:
    given = response.parameters
    table = response.glue_backend.get_table(given["DatabaseName"], given["TableInput"]["Name"])
    if wanted != str(table._current_version):
        raise JsonRESTError(
            "ConcurrentModificationException",
            "Update table failed due to concurrent modifications.",
        )
