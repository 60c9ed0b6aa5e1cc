"""A moto S3 server in this process, on a free port, without logging each request.

moto 5.2.5 ignores some conditions (the ETag of DeleteObjects, CopySourceIfMatch, a wrong
CRC32). What depends on those is tested on the in-memory store, and by the parameters sent.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from moto.moto_api._internal.models import moto_api_backend
from moto.moto_server.threaded_moto_server import ThreadedMotoServer


@contextmanager
def moto_server() -> Iterator[str]:
    """Yield the endpoint URL of an empty server that ends with the context.

    moto's state is global to the process: a second server within the context would empty the first.
    """
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    moto_api_backend.reset()
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()
