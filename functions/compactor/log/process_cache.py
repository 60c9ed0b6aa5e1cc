"""What a process has seen of a run's state, so that it need not ask for it at each partition."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from compactor.model import SkipReason


@dataclass(slots=True)
class SeenState:
    """What the partitions that one process works on have in common.

    It replaces no look at the marker: each partition still reads ``identity.json`` before it
    stores anything, and what is known here counts only as long as that says the same.

    Attributes:
        scheme_of: identity of the log beside which the run's scheme was seen or written.
            Schemes are only ever added, by a writer that has read those before.
        has_no_table: nothing of the destination was given to a table when a clean-up of this run
            looked. Of one that was begun since, an output that is gone makes it look again.
        contents: what clean-up has read of the table's metadata, by version, as
            :func:`compactor.sinks.table_proof.look_at_table` keeps it.
        has_no_readers: no table of query engines shows the destination, as a clean-up of this run
            saw. One that is made since shows nothing that clean-up may delete.
        levels: which levels of the source's bucket a table or registry owns, as
            :class:`compactor.planning.surroundings.Surroundings` keeps it.
    """

    scheme_of: str = ""
    has_no_table: bool = False
    contents: dict[str, Any] = field(default_factory=dict)
    has_no_readers: bool = False
    levels: dict[str, Future[SkipReason | None]] = field(default_factory=dict)
