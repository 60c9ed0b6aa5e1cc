"""What a process has seen of a run's state, so that it need not read it for each partition."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from compactor.model import SkipReason


@dataclass(slots=True)
class SeenState:
    """Facts shared by all partitions that one process works on.

    They do not replace reading the marker: each partition still reads ``identity.json`` before it
    stores anything, and these facts are valid only while the marker is the same.

    Attributes:
        scheme_of: identity of the log whose stored schemes include the run's. Schemes are only ever
            added, by writers that have read the earlier ones.
        has_no_table: no output of the destination had been added to a table when a clean-up of this
            run looked. If a table was begun since, a missing output makes clean-up look again.
        contents: what clean-up has read of the table's metadata, by version, as
            :func:`compactor.sinks.table_proof.look_at_table` keeps it.
        has_no_readers: a clean-up of this run saw that no query engine's table shows the
            destination. A table created since shows nothing that clean-up may delete.
        levels: which levels of the source's bucket a table or registry owns, as
            :class:`compactor.planning.surroundings.Surroundings` keeps it.
    """

    scheme_of: str = ""
    has_no_table: bool = False
    contents: dict[str, Any] = field(default_factory=dict)
    has_no_readers: bool = False
    levels: dict[str, Future[SkipReason | None]] = field(default_factory=dict)
