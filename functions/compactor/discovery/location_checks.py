"""Checks source, destination and state before a run does anything with them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

from compactor.destination import is_output_name
from compactor.errors import InvalidInput
from compactor.log.identity import read_identity, refuse_outputs_as_sources
from compactor.log.log import empty_log
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings

_PAGES_LOOKED_AT = 10
# Fields of the errors that stores raise if a bucket cannot be used. Other errors are passed on.
_ABOUT_A_BUCKET = frozenset({"bucket", "permission", "region"})


def check_places(settings: Settings, store: ObjectStore) -> None:
    """Check each location once, so that a mistake in a URI ends the run before it does anything.

    Raises:
        InvalidInput: a bucket does not exist or may not be read; the destination was made with
            other partitions; or the source has outputs of a run.
        IntegrityError: the log of what is in the destination is gone or elsewhere.
    """
    for field, place in (
        ("s3_source_uri", settings.source.root),
        ("s3_destination_uri", settings.destination),
    ):
        with blaming(field, settings):
            next(iter(store.list_level(place.bucket, place.prefix)), None)
    with blaming("s3_state_uri", settings):
        identity = read_identity(settings, store)
    if identity is not None:
        identity.require_same_partitions(settings)
    with blaming("s3_source_uri", settings):
        refuse_outputs_as_sources(settings, store)
    if identity is None:
        _refuse_unknown_outputs(settings, store)


def _refuse_unknown_outputs(settings: Settings, store: ObjectStore) -> None:
    """Raise IntegrityError if there are outputs but no log: it is gone or elsewhere.

    Only the first pages are read. Each partition is checked again before its first commit.
    """
    place = settings.destination

    with blaming("s3_destination_uri", settings):
        pages = islice(store.list_objects(place.bucket, place.prefix), _PAGES_LOOKED_AT)
        outputs = (one for page in pages for one in page if is_output_name(one.key))
        output = next(outputs, None)
    # Another first run may have published it just now. Then there is an identity by now.
    if output is not None and read_identity(settings, store) is None:
        raise empty_log(settings.s3_state_uri, output)


@contextmanager
def blaming(name: str, settings: Settings) -> Iterator[None]:
    """Turn a store's errors about a bucket into errors about the input field that names it.

    Args:
        name: the field whose URI the requests inside use.
        settings: the run's input.
    """
    try:
        yield
    except InvalidInput as error:
        if error.field not in _ABOUT_A_BUCKET:
            raise
        value = getattr(settings, name)
        accepted = f"{error.accepted} ({error.field} {error.value!r})"
        message = f"{name} {value}: {error.message}" if error.message else ""
        raise InvalidInput(name, value, accepted, message=message) from error
