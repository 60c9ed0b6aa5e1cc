"""The cost of a planned run: inputs from the store, and printing the verdict."""

from __future__ import annotations

from compactor.conditions import is_aws
from compactor.discovery.estimate import Standing
from compactor.log.identity import read_identity
from compactor.money import Verdict
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


def show_verdict(found: Verdict, *, explain: bool = False) -> None:
    """Print the cost table and verdict; with ``explain``, every figure and its price sources."""
    if found.before.objects:
        heads = ("", "Sources", "Outputs", "Saved")
        title = f"Cost and savings at the prices of {found.prices.region}"
        print_table(title, heads, found.rows())
    for line in found.lines():
        print_line(line)
    if explain:
        for line in found.explain():
            print_line(line)
