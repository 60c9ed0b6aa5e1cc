"""Errors of full disks, with the path that could not be written."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Errors of a disk, quota or file size limit that is reached.
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name a path in the error of a full disk; such an error of an open file names none."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL and error.filename is None:
            error.filename = str(path)
        raise
