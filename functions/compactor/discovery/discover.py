"""Finds the partitions of a run by their prefixes. Counts nothing in them, and only reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from compactor.clock import NoDeadline
from compactor.discovery.location_checks import blaming, check_places
from compactor.discovery.parallel import Parallel
from compactor.discovery.search import Search, dates_of, skipped_of
from compactor.discovery.work_list import Discovery
from compactor.errors import InvalidInput
from compactor.model import SHOWN_EXAMPLES, Partition, Skipped, SkipReason, add_skipped
from compactor.planning.partition_listing import ListAfter
from compactor.planning.surroundings import Surroundings
from compactor.ports import Deadline, ObjectStore
from compactor.settings.layout import longest_path
from compactor.settings.settings import Settings

# Each has one request at a time.
_THREADS = 16
# Kept at an invocation's end for requests in flight and the work list; a quarter if it is short.
_RESERVE_SECONDS = 60.0


def discover(
    settings: Settings, store: ObjectStore, now: float, deadline: Deadline | None = None
) -> Discovery:
    """Find every partition that holds an object, in order.

    Objects below prefixes that are left out (in a table, or with too long keys) are counted, since
    no worker sees them.

    Args:
        settings: settings of the run.
        store: where the objects are; called from several threads concurrently.
        now: UNIX seconds; determines the days of a window that is relative to today.
        deadline: of this call, which has to find all of them; none by default.

    Raises:
        InvalidInput: a bucket does not exist or may not be read; the window is empty; the
            destination was made with other partitions; the source has outputs of a run; the state
            lies in another state; or there are more prefixes than one call can list.
        IntegrityError: the log of what is in the destination is gone or elsewhere.
    """
    dates = dates_of(settings, now)
    check_places(settings, store)
    around = Surroundings(store, settings.source.root.bucket)
    require_time = _time_check(settings, deadline or NoDeadline())
    left_out = partial(_left_out, settings, store, around)
    partitions: list[Partition] = []
    with Parallel(_THREADS) as parallel:
        search = Search(settings, store, parallel, around, require_time)
        found = list(search.partitions(dates))
        skipped: dict[str, Skipped] = {}
        if search.unpartitioned.objects:
            skipped = {SkipReason.UNPARTITIONED.value: search.unpartitioned}
        for partition, others in zip(found, parallel.in_order(left_out, found), strict=True):
            require_time()
            if others is None:
                partitions.append(partition)
            else:
                add_skipped(skipped, others, SHOWN_EXAMPLES)
    return Discovery(tuple(partitions), skipped)


def discover_pending(
    settings: Settings,
    store: ObjectStore,
    pending: Callable[[Partition], ListAfter],
    partitions: Iterable[Partition],
) -> Discovery:
    """Return those of the partitions that events named in which an object is pending.

    Args:
        settings: settings of the run.
        store: where the log is.
        pending: returns what lists the pending objects of a partition, in any thread.
        partitions: the partitions, in order.

    Raises:
        InvalidInput, IntegrityError: see :func:`discover`.
        TransientStoreError: the registry did not answer.
    """
    check_places(settings, store)

    def has_pending(partition: Partition) -> bool:
        return any(pending(partition)(""))

    found = list(partitions)
    with Parallel(_THREADS) as parallel:
        wanted = zip(found, parallel.in_order(has_pending, found), strict=True)
        return Discovery(tuple(partition for partition, pending in wanted if pending))


def _time_check(settings: Settings, deadline: Deadline) -> Callable[[], None]:
    """Return a function that raises InvalidInput once the time for finding prefixes is up."""
    reserve = min(_RESERVE_SECONDS, deadline.remaining_seconds() / 4)

    def require_time() -> None:
        if deadline.remaining_seconds() >= reserve:
            return
        if settings.date_format is None:
            field, accepted = "depth", "a smaller depth, or a source with fewer prefixes"
        else:
            field, accepted = "window", "a shorter window, or a source with fewer prefixes"
        value = getattr(settings, field)
        message = (
            f"{field}: one call cannot list the prefixes of {settings.s3_source_uri} with"
            f" {field} {value!r}; expected {accepted}"
        )
        raise InvalidInput(field, value, accepted, message=message)

    return require_time


def _left_out(
    settings: Settings, store: ObjectStore, around: Surroundings, partition: Partition
) -> Mapping[str, Skipped] | None:
    """Return the objects of a prefix that no worker may take, by reason; None if one takes it."""
    if len(partition.path.encode()) > longest_path(settings.destination, settings.state):
        reason: SkipReason | None = SkipReason.UNPARTITIONED
    else:
        reason = around.above(partition.prefix)
    if reason is None:
        return None
    with blaming("s3_source_uri", settings):
        pages = store.list_objects(partition.bucket, partition.prefix)
        total = Skipped(0, 0)
        for page in pages:
            total = total.plus(skipped_of(page), SHOWN_EXAMPLES)
    return {reason.value: total} if total.objects else {}
