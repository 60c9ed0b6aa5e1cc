"""What is said where a run finds nothing: of the source, of the window, of what waits."""

from __future__ import annotations

from datetime import timedelta
from itertools import islice

from compactor.discovery.discover import Discovery
from compactor.discovery.parallel import Parallel
from compactor.discovery.search import Search
from compactor.discovery.work_items import blaming
from compactor.errors import InvalidInput
from compactor.log.entries import Commit
from compactor.log.log_reader import some_entries
from compactor.ports import ObjectStore
from compactor.settings.settings import STATE_ROOT, Settings
from compactor.settings.uris import S3Uri

_SHOWN_PREFIXES = 5
_PAGES_LOOKED_AT = 3


def require_source(settings: Settings, store: ObjectStore) -> None:
    """Do nothing where there is, or was, anything below the source.

    One LIST, and a few requests more where that shows nothing. Sources that clean-up deleted are
    known by the commit log. For an inventory, and for events, the bucket is not asked.

    Raises:
        InvalidInput: there is no object below it, and no commit names one; or it may not be listed.
    """
    if settings.listing_kind != "list":
        return
    root = settings.source.root
    with blaming("s3_source_uri", settings):
        page = next(iter(store.list_level(root.bucket, root.prefix)), None)
    if page is not None and (page.objects or page.prefixes):
        return
    if any(_is_of(settings, commit) for commit in some_entries(settings.state, store)):
        return
    raise nothing_below(root, store)


def nothing_below(root: S3Uri, store: ObjectStore) -> InvalidInput:
    """The error that there is no object below a prefix; it names what there is beside it."""
    there = _beside(root, store)
    message = (
        f"nothing below {root.uri}: is the prefix right? the bucket"
        f" {'has ' + ', '.join(there) if there else f'{root.bucket} is empty'}"
    )
    return InvalidInput("s3_source_uri", root.uri, "a prefix with objects", message=message)


def _is_of(settings: Settings, commit: Commit) -> bool:
    """A commit is one of this source; of one that names no sources, its bucket must do."""
    root, keys = settings.source.root, [one.key for one in commit.sources]
    return commit.source_bucket == root.bucket and (
        not keys or any(key.startswith(root.prefix) for key in keys)
    )


def _beside(root: S3Uri, store: ObjectStore) -> list[str]:
    """What is in the bucket of a prefix, at the deepest level of it that has anything."""
    levels = root.prefix.split("/")[:-1]
    while levels:
        levels.pop()
        above = "".join(f"{level}/" for level in levels)
        for page in islice(store.list_level(root.bucket, above), _PAGES_LOOKED_AT):
            found = [*page.prefixes, *(one.key for one in page.objects)]
            # Where states lie, by default.
            found = [one for one in found if one != STATE_ROOT]
            if found:
                more = ["..."] if len(found) > _SHOWN_PREFIXES else []
                return found[:_SHOWN_PREFIXES] + more
    return []


def window_warning(settings: Settings, store: ObjectStore, now: float) -> str:
    """The warning about a window without objects, with what there is instead; else empty.

    Args:
        settings: of a run that found no partition.
        store: where the source is.
        now: UNIX seconds.

    Raises:
        InvalidInput: the source may not be listed.
    """
    window, form = settings.window(now), settings.date_format
    if window is None or form is None or settings.listing_kind != "list":
        return ""
    with Parallel(1) as parallel:
        parents = Search(settings, store, parallel).parents()
    first, last = window[0].date(), (window[1] - timedelta(seconds=1)).date()
    text = f"no object from {first} to {last} ({form})"
    if not parents:
        return f"{text}, for no prefix matches {settings.s3_source_uri}"
    root = settings.source.root
    there = _prefixes(root.bucket, parents[0], store)
    if not there:
        return f"{text}, and there is no prefix where dates are expected: is the source right?"
    shown = [one.removeprefix(root.prefix) for one in there[:_SHOWN_PREFIXES]]
    text += f"; below {root.uri} there is {', '.join(shown)}"
    text += ", ..." if len(there) > _SHOWN_PREFIXES else ""
    if not any(character.isdigit() for character in shown[0]):
        return f"{text}; levels above the dates are given as wildcards, such as {root.uri}*/"
    # Where names of dates sort as dates do, that is the newest one.
    newest = there[-1]
    for _ in form.split("/")[1:]:
        newest = next(reversed(_prefixes(root.bucket, newest, store)), newest)
    return f"{text}, and last {newest.removeprefix(root.prefix)}"


def _prefixes(bucket: str, prefix: str, store: ObjectStore) -> list[str]:
    pages = islice(store.list_level(bucket, prefix), _PAGES_LOOKED_AT)
    return [one for page in pages for one in page.prefixes]


def is_without_partitions(found: Discovery) -> bool:
    """True where discovery found no partition with an object."""
    return not (found.items or found.oversized or found.resting.partitions)
