"""``compactor query``: runs SQL over outputs, outputs and sources, or original sources."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from compactor.cleaning.decide import lies_in
from compactor.errors import InvalidInput
from compactor.log.columnar import Rejects
from compactor.log.entries import Commit
from compactor.log.log_reader import StoredLog
from compactor.log.rejects import RejectsSeen
from compactor.log.rejects import describe as describe_rejects
from compactor.model import SourceObject
from compactor.ports import ObjectStore
from compactor.settings.uris import S3Uri, SourceLocation, parse_source
from compactor.sizes import human_bytes, plural
from compactor_cli.commands import options
from compactor_cli.commands.store import open_store
from compactor_cli.commit_logs import all_logs, state_from
from compactor_cli.console import print_note, print_table, progress
from compactor_cli.duck import VIEW, Found, ask, require_sql
from compactor_cli.machine.extras import require
from compactor_cli.queried import Staged, Staging


@dataclass(frozen=True, slots=True)
class Wish:
    """What to query.

    Attributes:
        source: prefix of the sources to include where no output has them yet; None for outputs
            only.
        originals: query the sources, cut out of their outputs, instead of the outputs.
        below: prefix of the paths of partitions.
    """

    source: SourceLocation | None = None
    originals: bool = False
    below: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add DEST, the statement, and what it reads."""
    options.add_places(parser, options.DESTINATION)
    parser.add_argument(
        "statement",
        metavar="SQL",
        help=f"a DuckDB statement FROM {VIEW}, which has the records' own columns, partition, and a"
        " column for each name=value in a partition's path",
    )
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "--exact",
        metavar="SOURCE",
        help="outputs, and the objects of SOURCE (wildcards allowed) that are in no output yet;"
        " each record once, except rejected ones, which are counted and located",
    )
    chosen.add_argument(
        "--originals",
        action="store_true",
        help="the sources as their outputs hold them, deleted ones too, with the column source_key",
    )
    parser.add_argument(
        "--below",
        metavar="PATH",
        default="",
        help="only partitions whose path begins with this, such as dt=2026-01- (by default all)",
    )
    options.add_common(parser)
    options.add_state(parser)


def run(args: argparse.Namespace) -> int:
    """Download the objects, run the statement, print the rows.

    Raises:
        ExtraMissing: DuckDB is not installed.
        InvalidInput: there is no state, nothing to read, or DuckDB rejects the statement.
        IntegrityError: an output differs from its commit.
    """
    require("query", "compactor query")
    # Rejects invalid SQL before anything is downloaded.
    require_sql(args.statement)
    source = None if args.exact is None else _source(args.exact)
    state = state_from(args)
    store = open_store(args.endpoint_url, state.bucket)
    with TemporaryDirectory(prefix="compactor-query-") as directory:
        staging = Staging(store, Path(directory))
        wish = Wish(source, args.originals, args.below)
        staged = stage(wish, state, store, staging)
        if not args.json:
            size = human_bytes(staging.bytes)
            print_note(f"read {plural(len(staged), 'object')}, {size}")
        found = ask(args.statement, staged)
    _show(found, as_json=args.json)
    return 0


def stage(wish: Wish, state: S3Uri, store: ObjectStore, staging: Staging) -> list[Staged]:
    """Download what was asked for.

    The source is listed before the logs are read: an object that a run commits meanwhile is then in
    an output and known to be, and clean-up deletes only such objects.

    Raises:
        InvalidInput: there is no state, or nothing to read.
        IntegrityError: an output differs from its commit.
        SourceChanged: a source has changed since it was listed.
    """
    waiting = _listed(wish, store)
    staged: list[Staged] = []
    known: set[bytes] = set()
    left_alone: set[bytes] = set()
    rejects: list[Rejects] = []
    with progress("reading") as bar:
        for log in all_logs(state, store):
            if not log.path.startswith(wish.below) and not wish.below.startswith(log.path):
                continue
            commits = _Commits(log, store, known, left_alone)
            wanted = staging.originals if wish.originals else staging.outputs
            for one in wanted(log, commits):
                staged.append(one)
                bar.advance()
            rejects += commits.rejects.waiting
        if wish.source is not None:
            rest = [one for one in waiting if one.identity not in known]
            wanted_sources = [one for one in rest if one.identity not in left_alone]
            for one in staging.sources(wish.source.root, wanted_sources):
                staged.append(one)
                bar.advance()
            if len(rest) > len(wanted_sources):
                print_note(
                    f"left out: {plural(len(rest) - len(wanted_sources), 'quarantined object')}"
                )
    _print_rejects(rejects, wish)
    if not staged:
        raise InvalidInput(
            "--below", wish.below or None, "the beginning of the path of a partition with objects"
        )
    return staged


def _print_rejects(rejects: Sequence[Rejects], wish: Wish) -> None:
    if rejects and not wish.originals:
        print_note(f"left out: {describe_rejects(rejects)}")


class _Commits:
    """Iterates over the valid commits of a log and records their sources."""

    def __init__(
        self, log: StoredLog, store: ObjectStore, known: set[bytes], left_alone: set[bytes]
    ) -> None:
        self._log = log
        self._store = store
        self._known = known
        self._left_alone = left_alone
        self.rejects = RejectsSeen()

    def __iter__(self) -> Iterator[Commit]:
        for commit in self._log.newest_first(self._store):
            self._known.update(source.identity for source in commit.sources)
            self._left_alone.update(one.source.identity for one in commit.quarantined)
            self.rejects.add(commit)
            yield commit


def _listed(wish: Wish, store: ObjectStore) -> list[SourceObject]:
    if wish.source is None:
        return []
    source, root = wish.source, wish.source.root
    pages = store.list_objects(root.bucket, root.prefix + wish.below)
    return [one for page in pages for one in page if one.size and lies_in(one, source)]


def _source(text: str) -> SourceLocation:
    try:
        return parse_source(text)
    except ValueError as error:
        raise InvalidInput("--exact", text, str(error)) from None


def _show(found: Found, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(found.to_json(), indent=2, ensure_ascii=False))
        return
    rows = [tuple("" if one is None else str(one) for one in row) for row in found.rows]
    print_table(plural(len(rows), "row"), tuple(found.columns), rows)
