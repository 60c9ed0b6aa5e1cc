"""Counts the GETs of objects at the embedded S3, to measure readers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from compactor_local.s3_http import Application


class CountedGets:
    """A WSGI middleware that counts the GETs of objects.

    Args:
        application: the application that answers requests.
    """

    def __init__(self, application: Application) -> None:
        self._application = application
        self._lock = threading.Lock()
        self._gets = 0

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        """Answer one request."""
        if environ["REQUEST_METHOD"] == "GET" and _is_object(environ):
            with self._lock:
                self._gets += 1
        return self._application(environ, start)

    @property
    def gets(self) -> int:
        """The number so far, without listings."""
        with self._lock:
            return self._gets


def _is_object(environ: dict[str, Any]) -> bool:
    key = environ["PATH_INFO"].lstrip("/").partition("/")[2]
    return bool(key) and "list-type=" not in environ["QUERY_STRING"]
