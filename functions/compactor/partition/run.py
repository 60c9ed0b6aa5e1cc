"""Compacts one partition in one worker, from its listing to its published outputs.

A call is one invocation for one partition; a run may need several. It goes through the partition
in windows, each a part of the listing. The plan of a window has groups: sources that become one
output. Output and log are written in this order: parts of an upload, the commit (one append to the
partition's log), and the completion of the upload, which makes the output readable.
"""

from __future__ import annotations

from contextlib import nullcontext

from compactor.discovery.work_list import leave_to_spark
from compactor.errors import InvalidInput
from compactor.partition.inputs import PartitionRun
from compactor.partition.listing import Window
from compactor.partition.receipts import Counts, Receipt, ReceiptWriter
from compactor.partition.steps import is_oversized, show
from compactor.partition.work import PartitionWork
from compactor.process.background import Background


def compact_partition(run: PartitionRun, earlier: Counts) -> Receipt:
    """Compact one partition as far as the deadline allows, and write its receipt.

    Safe to repeat, also concurrently, and to kill at any instant: only the log decides what is
    committed, and each call first publishes what the log names.

    Args:
        run: the run's input.
        earlier: counts of the earlier calls for this partition in this run.

    Returns:
        The receipt; its status is ``more`` if time ran out with work left.

    Raises:
        Exception: any error that ended the call, after it was recorded in the receipt. Or the
            receipt could not be written; then the next call begins where this one did.
    """
    # Until it is known to be done, the receipt says "failed".
    writer = ReceiptWriter(run, earlier)
    receipt = writer.receipt
    work: PartitionWork | None = None
    checkpoint = None
    try:
        work = PartitionWork.open(run, receipt)
        _compact(work, earlier)
        # Also if time ran out: the next call need not check again the outputs that it covers.
        checkpoint = work.write_checkpoint
    except Exception as error:
        receipt.fail(type(error).__name__, str(error))
        raise
    finally:
        if work is not None:
            work.close()
        writer.close(None if work is None else work.state)
        with Background(checkpoint) if checkpoint is not None else nullcontext():
            writer.write()
    return receipt


def _compact(work: PartitionWork, earlier: Counts) -> None:
    """Compact the partition as far as the deadline allows, unless it is too large for a worker."""
    run, receipt = work.run, work.receipt
    began_after = receipt.cursor.after
    if not _compact_windows(work) or not work.finish():
        receipt.status = "more"
        _require_progress(work, earlier, began_after)
    work.require_none_refused()
    if receipt.status == "done":
        if receipt.oversized:
            # Its groups that are committed already stay; Spark takes what is left.
            leave_to_spark(run.settings, run.run_id, run.partition, run.store)
        receipt.shown = show(run)


def _compact_windows(work: PartitionWork) -> bool:
    """Compact all windows, one after the other, or up to where Spark takes over.

    Returns:
        False if time ran out.
    """
    run = work.run
    window: Window | None = Window(work.receipt.cursor.after)
    while window is not None:
        if work.is_out_of_time() or not work.publish_unpublished():
            return False
        plan = work.plan(window)
        if is_oversized(plan.groups, work.state.totals(run.run_id), run.settings):
            work.receipt.oversized = True
            return True
        for group in plan.groups:
            if work.is_out_of_time() or not work.compact(group):
                break  # Above, the loop ends if time ran out; else the window is planned again.
        else:
            if not work.must_replan:
                window = work.end_window(window)
    return True


def _require_progress(work: PartitionWork, earlier: Counts, began_after: str) -> None:
    """Require that the third call, and each later one, ends a group, a repair or a window.

    Raises:
        InvalidInput: it did not. The partition would be called forever.
    """
    has_moved = work.receipt.cursor.after != began_after
    if earlier.calls < 2 or work.groups or work.repaired or has_moved:
        return
    target = work.run.settings.target_bytes
    accepted = "a smaller target, so that one group fits the time of one invocation"
    raise InvalidInput("target_bytes", target, accepted)
