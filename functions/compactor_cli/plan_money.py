"""The cost of a planned run: inputs from the store, and printing the verdict."""

from __future__ import annotations

from compactor.conditions import is_aws
from compactor.discovery.estimate import Standing
from compactor.log.identity import read_identity
from compactor.money import HEADS, Verdict
from compactor.money.classes import class_lines
from compactor.ports import ObjectStore
from compactor.probe.probe import was_asked
from compactor.settings.settings import CleanUpMode, Settings
from compactor_cli.console import print_line, print_table


def standing_of(
    settings: Settings, store: ObjectStore, now: float, new_logs: int, *, deployed: bool = True
) -> Standing:
    """Return what a run would find of the state, with two reads.

    Args:
        settings: of the run.
        store: where the state is.
        now: UNIX seconds.
        new_logs: partitions with something to do that have no log yet.
        deployed: the run is on the state machine; otherwise on this machine.

    Raises:
        InvalidInput: the state is that of another destination.
        IntegrityError: the marker of the state is damaged.
    """
    deletes = settings.clean_up is CleanUpMode.DELETE
    return Standing(
        founded=read_identity(settings, store) is not None,
        asked=was_asked(settings.state, store, now, deletes=deletes),
        is_aws=is_aws(store.endpoint_url),
        new_logs=new_logs,
        deployed=deployed,
    )


def show_verdict(found: Verdict) -> None:
    """Print the verdict in one line, its amounts as a table, and what they are amounts of."""
    if not found.before.objects:
        print_line(found.lines()[0], "bold")
        return
    print_line(found.headline, "bold")
    print_table(found.title, HEADS, found.rows())
    print_line(found.basis)
    print_line(found.athena)
    scans = found.scans_per_month
    for line in class_lines(found.after, found.target_class, found.prices, scans):
        print_line(line)
    if found.prices.warning:
        print_line(found.prices.warning)


def explain_verdict(found: Verdict) -> None:
    """Print what the amounts come from: every figure with its formula, and each price's source."""
    for line in (*found.lines(), *found.explain()):
        print_line(line)
