"""Where a right is missing, all that are missing are named, so that they can be given together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from compactor.errors import InvalidInput
from compactor.ports import ObjectStore
from compactor.probe.rights import missing_rights
from compactor.settings.settings import Settings

# In the line of an error that is about a right: its own words, S3's, or a source's reason.
_ABOUT_RIGHTS = re.compile(r"not allowed: |AccessDenied|access_denied|permission")


def all_missing(line: str, settings: Settings, store: ObjectStore, *, writes: bool) -> str:
    """The line of an error; where it is about a right, followed by all that are missing.

    Args:
        line: of the error.
        settings: of the run.
        store: where sources, destination and state are.
        writes: ask for writing, too, which begins uploads and aborts them.
    """
    if not _ABOUT_RIGHTS.search(line):
        return line
    missing = missing_rights(settings, store, writes=writes)
    if len(missing) < 2:
        return line
    return f"{line}; {len(missing)} rights are missing: {', '.join(missing)}"


@contextmanager
def naming_all_missing(settings: Settings, store: ObjectStore, *, writes: bool) -> Iterator[None]:
    """Within the block, an error about a right names all that are missing."""
    try:
        yield
    except InvalidInput as error:
        line = all_missing(str(error), settings, store, writes=writes)
        if line == str(error):
            raise
        raise InvalidInput(error.field, error.value, error.accepted, message=line) from error
