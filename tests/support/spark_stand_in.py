"""Lets a worker do what Spark's driver does, in tests of what follows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from compactor.settings.settings import Settings


@contextmanager
def workers_as_spark() -> Iterator[None]:
    """Let workers take all of a partition, also in runs whose engine is Spark."""
    with patch.object(Settings, "is_oversized", lambda *_: False):
        yield
