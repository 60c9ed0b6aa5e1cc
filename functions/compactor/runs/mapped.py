"""What a run tells query engines of where sources are: the manifest table."""

from __future__ import annotations

from compactor.errors import CompactorError
from compactor.log.state import LogState
from compactor.runs.given import PartitionRun


def tell_sources(run: PartitionRun, state: LogState) -> str:
    """Bring the manifest table up to date with the partition's log, once all of it is published.

    What goes wrong is told, and ends no run: the log stands, and the next run goes on.

    Returns:
        Why the table does not tell of all entries, in one line; empty where it does, and where
        the settings ask for none.
    """
    if not run.settings.manifest_table or state.unpublished:
        return ""
    # Few runs have one, and it writes Parquet.
    from compactor.outputs.manifest_table import KnownLog, ManifestTable  # noqa: PLC0415 - see above

    table = ManifestTable(run.settings.state, run.partition.path, run.store)
    log = KnownLog(state.last, state.checkpoint, state.replaced, state.commit_ids)
    try:
        behind = table.catch_up(log, run.deadline)
    except CompactorError as error:
        return f"{type(error).__name__}: {error}"
    return f"time ran out, {behind:,} commits are not in it" if behind else ""
