"""Messages for runs that find nothing: about the source, the window, and skipped objects."""

from __future__ import annotations

from datetime import timedelta
from itertools import islice

from compactor.discovery.location_checks import blaming
from compactor.discovery.parallel import Parallel
from compactor.discovery.search import Search
from compactor.discovery.work_list import Discovery
from compactor.errors import InvalidInput
from compactor.log.identity import identity_at
from compactor.model import SkipReason
from compactor.ports import ObjectStore
from compactor.settings.settings import STATE_ROOT, Settings
from compactor.settings.uris import S3Uri

_SHOWN_PREFIXES = 5
_PAGES_LOOKED_AT = 3


def require_source(settings: Settings, store: ObjectStore) -> None:
    """Check that there is, or was, an object below the source.

    Takes one LIST, and a few requests more if that finds nothing. A source that was compacted, and
    that clean-up may have deleted, is known by the state's identity. With events, the bucket is not
    listed.

    Raises:
        InvalidInput: there is no object, and never was a commit; or the source cannot be listed.
    """
    if settings.takes_events:
        return
    root = settings.source.root
    with blaming("s3_source_uri", settings):
        page = next(iter(store.list_level(root.bucket, root.prefix)), None)
    if page is not None and (page.objects or page.prefixes):
        return
    identity = identity_at(settings.state, store)
    if identity is not None and identity.source_root == root.uri:
        return
    raise nothing_below(root, store)


def nothing_below(root: S3Uri, store: ObjectStore) -> InvalidInput:
    """Return the error that a prefix has no objects, with prefixes that exist nearby."""
    there = _beside(root, store)
    has = f"has {', '.join(there)}" if there else "is empty"
    advice = f"check the prefix; the bucket {root.bucket} {has}"
    message = f"there are no objects below {root.uri}: {advice}"
    return InvalidInput("s3_source_uri", root.uri, advice, message=message)


def _beside(root: S3Uri, store: ObjectStore) -> list[str]:
    """Return what the deepest non-empty level above a prefix contains."""
    levels = root.prefix.split("/")[:-1]
    while levels:
        levels.pop()
        above = "".join(f"{level}/" for level in levels)
        for page in islice(store.list_level(root.bucket, above), _PAGES_LOOKED_AT):
            found = [*page.prefixes, *(one.key for one in page.objects)]
            # The default location of states.
            found = [one for one in found if one != STATE_ROOT]
            if found:
                more = ["..."] if len(found) > _SHOWN_PREFIXES else []
                return found[:_SHOWN_PREFIXES] + more
    return []


def window_warning(settings: Settings, store: ObjectStore, now: float) -> str:
    """Return a warning that the window has no objects, and which dates there are; else empty.

    Args:
        settings: of a run that found no partition.
        store: where the source is.
        now: UNIX seconds.

    Raises:
        InvalidInput: the source cannot be listed.
    """
    window, form = settings.window_at(now), settings.date_format
    if window is None or form is None or settings.takes_events:
        return ""
    with Parallel(1) as parallel:
        parents = Search(settings, store, parallel).parents()
    first, last = window[0].date(), (window[1] - timedelta(seconds=1)).date()
    warning = f"no object from {first} to {last} ({form})"
    if not parents:
        return f"{warning}: no prefix matches {settings.s3_source_uri}"
    root = settings.source.root
    there = _prefixes(root.bucket, parents[0], store)
    if not there:
        return f"{warning}, and no prefix where dates are expected; check the source"
    shown = [one.removeprefix(root.prefix) for one in there[:_SHOWN_PREFIXES]]
    warning += f"; below {root.uri} there is {', '.join(shown)}"
    warning += ", ..." if len(there) > _SHOWN_PREFIXES else ""
    if not any(character.isdigit() for character in shown[0]):
        return f"{warning}; give the levels above the dates as wildcards, such as {root.uri}*/"
    # The newest one, if the names of dates sort chronologically.
    newest = there[-1]
    for _ in form.split("/")[1:]:
        newest = next(reversed(_prefixes(root.bucket, newest, store)), newest)
    return f"{warning}; the last is {newest.removeprefix(root.prefix)}"


def _prefixes(bucket: str, prefix: str, store: ObjectStore) -> list[str]:
    pages = islice(store.list_level(bucket, prefix), _PAGES_LOOKED_AT)
    return [one for page in pages for one in page.prefixes]


def is_without_partitions(found: Discovery) -> bool:
    """Return whether discovery found no partition with an object."""
    return not found.partitions and set(found.skipped) <= {SkipReason.UNPARTITIONED.value}
