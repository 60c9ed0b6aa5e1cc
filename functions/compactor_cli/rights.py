"""Errors about a missing permission, extended by all permissions that are missing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from compactor.errors import InvalidInput
from compactor.ports import ObjectStore
from compactor.probe.rights import missing_rights
from compactor.settings.settings import Settings

# Matches errors about permissions: our own, those of S3, and reasons of sources.
_ABOUT_RIGHTS = re.compile(r"not allowed: |AccessDenied|access_denied|permission")


def all_missing(line: str, settings: Settings, store: ObjectStore, *, writes: bool) -> str:
    """Return an error message, followed by all missing permissions if it is about one.

    Args:
        line: the message.
        settings: of the run.
        store: where sources, destination and state are.
        writes: check write permissions too, by creating and aborting uploads.
    """
    if not _ABOUT_RIGHTS.search(line):
        return line
    missing = missing_rights(settings, store, writes=writes)
    if len(missing) < 2:
        return line
    return f"{line}; {len(missing)} permissions are missing: {', '.join(missing)}"


@contextmanager
def naming_all_missing(settings: Settings, store: ObjectStore, *, writes: bool) -> Iterator[None]:
    """Extend an InvalidInput about a permission by all that are missing."""
    try:
        yield
    except InvalidInput as error:
        line = all_missing(str(error), settings, store, writes=writes)
        if line == str(error):
            raise
        raise InvalidInput(error.field, error.value, error.accepted, message=line) from error
