"""Plans the rejects of earlier entries as groups, which a run replays before its first window."""

from __future__ import annotations

from compactor.log.rejects import Waiting
from compactor.log.state import LogState
from compactor.model import ObjectGroup
from compactor.planning.packing import make_group
from compactor.settings.settings import Settings
from compactor.sizes import MIB

# Most bytes of rejects in one group, which is held in memory. One object may have as many.
_REPLAY_BYTES = 64 * MIB


def replay_groups(
    state: LogState, settings: Settings
) -> list[tuple[ObjectGroup, tuple[Waiting, ...]]]:
    """Return the waiting rejects as groups to be replayed, the oldest first.

    Args:
        state: the log. Rejects of unpublished entries are left out, as these may become void.
        settings: of the run; there are no groups unless it converts records to rows.
    """
    if not settings.columnar or settings.format == "parquet":
        return []
    packed: list[list[Waiting]] = []
    size = 0
    for one in state.rejects.in_order:
        if one.sequence in state.unpublished:
            continue
        if not packed or size + one.rejects.size > _REPLAY_BYTES:
            packed.append([])
            size = 0
        packed[-1].append(one)
        size += one.rejects.size
    return [
        (make_group([one.source for one in waiting], settings), tuple(waiting))
        for waiting in packed
    ]
