"""What a run shows to query engines of a partition that it has worked on.

What refreshes their table is imported where there is one: few runs have.
"""

from __future__ import annotations

from compactor.errors import CompactorError, InvalidInput
from compactor.readers.outcome import Outcome
from compactor.runs.partition_run import PartitionRun


def show(run: PartitionRun) -> Outcome | None:
    """Let the readers' table show the partition as it is now.

    What goes wrong is reported, and ends no run: what is committed stands, readers see it once, and
    clean-up waits.

    Returns:
        None where the settings name no table.

    Raises:
        InvalidInput: the table has no column for the partition, so that no later run shows it.
    """
    settings, path = run.settings, run.partition.path
    if settings.reader_table is None:
        return None
    from compactor.readers.refresh import Refreshing, refresh  # noqa: PLC0415 - see above

    try:
        catalog = run.readers(settings.reader_table)
        work = Refreshing(settings, run.store, run.clock, catalog)
        (outcome,) = refresh([path], work)
    except CompactorError as error:
        return Outcome(path, fault=f"{type(error).__name__}: {error}")
    if outcome.is_refused:
        raise InvalidInput("reader_table", settings.reader_table, "", told=outcome.fault)
    return outcome
