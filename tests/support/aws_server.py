"""moto's S3 and Glue in a separate process, because delta-rs holds the GIL during requests.

    with aws_server() as url: ...

moto 5.2.5 ignores ``VersionId`` of Glue's UpdateTable, on which every commit of an Iceberg table
depends: here it is compared, under a lock, as AWS does.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def aws_server() -> Iterator[str]:
    """Yield the endpoint URL of a server that ends with the context."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.aws_server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def compare_versions() -> None:
    """Make moto's Glue refuse an update of any but the table's current version."""
    from moto.core.exceptions import JsonRESTError
    from moto.glue.responses import GlueResponse

    one_at_a_time = threading.RLock()
    update = GlueResponse.update_table

    def update_table(self: Any) -> Any:
        given = self.parameters
        with one_at_a_time:
            name = given["TableInput"]["Name"]
            table = self.glue_backend.get_table(given["DatabaseName"], name)
            wanted = given.get("VersionId")
            if wanted is not None and str(table._current_version) != str(wanted):
                raise JsonRESTError("ConcurrentModificationException", "another version is there")
            return update(self)

    setattr(GlueResponse, "update_table", update_table)  # noqa: B010 - mypy forbids the other way


def main() -> None:
    """Serve until standard input ends."""
    from tests.support.moto_server import moto_server

    compare_versions()
    with moto_server() as url:
        sys.stdout.write(f"{url}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
