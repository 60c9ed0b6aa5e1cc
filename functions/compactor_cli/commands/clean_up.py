"""``compactor clean-up``: deletes sources whose commits are past retention, after confirmation."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Sequence
from dataclasses import asdict
from typing import Any

from compactor.cleaning.clean_partition import Decision
from compactor.clock import SystemClock, new_run_id
from compactor.errors import InvalidInput
from compactor.ports import ObjectStore
from compactor.report.reasons import first_of
from compactor.settings.settings import Settings
from compactor.sizes import human_bytes, plural
from compactor_cli import parameters as given
from compactor_cli.cleaning import DELETE_AFTER, Cleaning, Done
from compactor_cli.command_line import Args, Option, action
from compactor_cli.commit_logs import require_state
from compactor_cli.console import (
    is_agreed,
    print_error,
    print_line,
    print_table,
    require_answer,
)
from compactor_cli.failures import Failure
from compactor_cli.store import open_store

_SHOWN_ROWS = 50


@action(
    given.places("s3_source_uri", "s3_destination_uri"),
    Option("-n", "--dry-run", is_flag=True, help="only show what would be deleted; read-only"),
    given.YES,
    given.COMMON,
    given.fields("delete_after", "s3_state_uri"),
)
def run(args: Args) -> int:
    """Show what is due for deletion, ask for confirmation, and delete.

    Raises:
        InvalidInput: the input is invalid, or there is no terminal to confirm on.
        Failure: something was unsafe, refused or failed; each case was printed in one line.
    """
    require_answer(args, dry_run=args.dry_run)
    settings = Settings.from_input({"delete_after": DELETE_AFTER, **given.fields_from(args)})
    store = open_store(args.endpoint_url, settings.state.bucket)
    cleaning = Cleaning(settings, store, SystemClock(), new_run_id())
    decisions = cleaning.decide()
    if not args.json:
        _show(decisions, settings, store)
    done = None
    if not args.dry_run and any(one.due or one.orphans for one in decisions):
        if not is_agreed(args, _question(decisions)):
            raise Failure("nothing was deleted")
        cleaning.ask_store()
        done = cleaning.act(decisions)
    if args.json:
        print(json.dumps(_document(decisions, done), indent=2))
    elif done is not None:
        _show_done(done, {line for one in decisions for line in one.warnings})
    _end(decisions, done)
    return 0


def _question(decisions: Sequence[Decision]) -> str:
    sources = sum(due.sources for one in decisions for due in one.due)
    return f"delete {plural(sources, 'source')} permanently?"


def _show(decisions: Sequence[Decision], settings: Settings, store: ObjectStore) -> None:
    for line in _faults(decisions):
        print_error(_one_line(line))
    if any(one.due or one.unsafe or one.error or one.orphans for one in decisions):
        _show_due(decisions, settings)
    else:
        print_line(_nothing_due(decisions, settings, store))
    for line in _warnings(decisions):
        print_line(f"warning: {_one_line(line)}", "bold")


def _nothing_due(decisions: Sequence[Decision], settings: Settings, store: ObjectStore) -> str:
    """Return why nothing is due: commits are recent or of another source, or there is no state."""
    if elsewhere := sum(one.elsewhere for one in decisions):
        commits = plural(elsewhere, "commit")
        where = f"none of {commits} past retention is of {settings.s3_source_uri}"
        return f"nothing to delete: {where}; check that it is the source of these outputs"
    if waiting := sum(one.waiting for one in decisions):
        commits = plural(waiting, "commit")
        return f"nothing to delete yet: {commits} past retention may still have readers"
    try:
        require_state(settings.state, store)
    except InvalidInput as error:
        return f"nothing to delete: {error}"
    age = settings.delete_after
    return f"no commit in {settings.state.uri} is older than {age} and not cleaned up"


def _show_due(decisions: Sequence[Decision], settings: Settings) -> None:
    rows = [(one.path or "(root)", *_figures([one])) for one in decisions[:_SHOWN_ROWS]]
    rows.append((plural(len(decisions), "partition"), *_figures(decisions)))
    heads = ("Partition", "Commits", "Sources", "Bytes", "Unsafe", "Elsewhere", "Uploads")
    print_table(
        f"Due for deletion: commits older than {settings.delete_after} with verified outputs",
        heads,
        rows,
    )
    if len(decisions) > _SHOWN_ROWS:
        more = plural(len(decisions) - _SHOWN_ROWS, "more partition")
        print_line(f"and {more}; --json lists all")
    if any(one.elsewhere for one in decisions):
        print_line(f"elsewhere: commits whose sources are not below {settings.s3_source_uri}")


def _figures(decisions: Iterable[Decision]) -> tuple[str, ...]:
    chosen = list(decisions)
    due = [due for one in chosen for due in one.due if due.sources]
    return (
        f"{len(due):,}",
        f"{sum(one.sources for one in due):,}",
        human_bytes(sum(one.bytes for one in due)),
        f"{sum(len(one.unsafe) + bool(one.error) for one in chosen):,}",
        f"{sum(one.elsewhere for one in chosen):,}",
        f"{sum(one.orphans for one in chosen):,}",
    )


def _show_done(done: Done, known: Container[str]) -> None:
    for line in (*done.unsafe, *done.failures, *done.refusals):
        print_error(_one_line(line))
    for line in (line for line in done.warnings if line not in known):
        print_line(f"warning: {_one_line(line)}", "bold")
    print_line(
        f"deleted {plural(done.deleted, 'source')} ({human_bytes(done.deleted_bytes)}) of"
        f" {plural(done.commits, 'commit')}; kept {done.changed:,} that changed since and"
        f" {done.refused:,} that the store refused to delete;"
        f" aborted {plural(done.uploads_aborted, 'upload')}"
    )


def _faults(decisions: Sequence[Decision]) -> list[str]:
    """Return why sources past retention are kept."""
    faults: list[str] = []
    for one in decisions:
        faults += one.unsafe
        if one.error:
            faults.append(f"{one.path or '(root)'}: {one.error}; nothing in it is deleted")
    return faults


def _warnings(decisions: Sequence[Decision]) -> list[str]:
    """Return each warning once, with the first partition it concerns."""
    found: dict[str, list[str]] = {}
    for one in decisions:
        for line in one.warnings:
            found.setdefault(line, []).append(one.path or "(root)")
    return [f"{line} ({first_of(paths)})" for line, paths in found.items()]


def _document(decisions: Sequence[Decision], done: Done | None) -> dict[str, Any]:
    due = [due for one in decisions for due in one.due if due.sources]
    return {
        "totals": {
            "partitions": len(decisions),
            "commits": len(due),
            "sources": sum(one.sources for one in due),
            "bytes": sum(one.bytes for one in due),
            "unsafe": len(_faults(decisions)),
            "uploads": sum(one.orphans for one in decisions),
        },
        "partitions": [asdict(one) for one in decisions],
        "done": None if done is None else done.to_dict(),
    }


def _end(decisions: Sequence[Decision], done: Done | None) -> None:
    """Check that clean-up met no fault.

    Raises:
        Failure: it did.
    """
    faults = len(_faults(decisions)) + (len(done.unsafe) + len(done.failures) if done else 0)
    if faults:
        raise Failure(
            f"IntegrityError: {plural(faults, 'finding')}", advice="the sources concerned are kept"
        )
    if done is not None and done.refused:
        raise Failure(
            f"{plural(done.refused, 'source')} could not be deleted", advice="run it again"
        )


def _one_line(text: str) -> str:
    return " ".join(text.split())
