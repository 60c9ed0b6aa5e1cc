"""Clean-up as a process of the simulation."""

from __future__ import annotations

from compactor.cleaning import clean_up_receipts
from compactor.cleaning.clean_partition import CleanUpRun, record_clean_up
from compactor.cleaning.clean_up_receipts import CleanUpReceipt
from compactor.clock import NoDeadline
from tests.simulation.processes import Process
from tests.simulation.world import World
from tests.support.examples import PARTITION


def cleaner(world: World) -> Process:
    """Return a process that cleans up the partition once, as the Lambda function does."""
    run_id = world.named("cleaning")

    def clean() -> CleanUpReceipt:
        client, settings = world.client(process), world.settings
        run = CleanUpRun(
            PARTITION.path, settings, client, world.machine_clock, NoDeadline(), run_id
        )
        return record_clean_up(run, clean_up_receipts.earlier(settings, run_id, PARTITION, client))

    process = Process(world.named("clean-up"), clean)
    return process
