"""``compactor verify``: checks every commit against the objects on S3. Read-only."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from compactor.catalogs.opening import open_catalog
from compactor.cleaning.decide import own_sources
from compactor.errors import IntegrityError, InvalidInput, ObjectArchived
from compactor.escaping import visible
from compactor.log.entries import Commit
from compactor.log.log_reader import StoredLog
from compactor.outputs.verify import check_commit, check_heads
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor.sinks.table_proof import OpenCatalog, TableProof, look_at_table
from compactor.sizes import plural
from compactor.table_formats.installed import install_command
from compactor_cli import parameters as given
from compactor_cli.command_line import Args, Option, action
from compactor_cli.commit_logs import all_logs
from compactor_cli.console import Bar, print_error, print_line, progress
from compactor_cli.failures import Failure
from compactor_cli.machine.extras import is_installed
from compactor_cli.source_check import SourceCheck, Sources
from compactor_cli.store import open_store

if TYPE_CHECKING:
    from compactor_cli.record_comparison import Finding

# Errors that concern one object only; verification continues with the others.
_OF_ONE_OBJECT = frozenset({"permission", "request", "archived"})
# Commits in memory at a time: one manifest may take tens of megabytes.
_CONCURRENT = 4
_SHOWN_KEYS = 3
_ALWAYS_SHOWN = 4


@dataclass(slots=True)
class TableCheck:
    """How the outputs of a destination compare with its table.

    Attributes:
        address: of the table.
        outputs: outputs in the table.
        waiting: outputs not in the table yet.
        rewritten: outputs gone from S3 whose rows the table has in other files.
    """

    address: str
    outputs: int = 0
    waiting: int = 0
    rewritten: int = 0


class _One(NamedTuple):
    """A commit, its name in messages, and its log."""

    name: str
    commit: Commit
    log: StoredLog


@dataclass(slots=True)
class Checked:
    """Counts of what was verified, and the findings.

    Attributes:
        commits: commits with a source below the given one; the counts below are of these.
        elsewhere: commits of other sources, which are not verified, with an example.
        records: records in those outputs; records of server-side copies are not counted.
        current: the present state of the sources, with ``--sources``.
        findings: one line per fault.
        not_read: one line per output in an archive tier that HEAD finds intact. They count as
            outputs, and their records as records.
        deep: differences that DuckDB sees between outputs and sources; None without ``--deep``.
        not_compared: with ``--deep``, one line per output whose records were not compared.
        table: comparison with the destination's table; None where it has none.
        dead_letters: records in no output, because they do not fit its schema;
            ``dead_letter_objects`` hold them.
    """

    commits: int = 0
    outputs: int = 0
    sources: int = 0
    records: int = 0
    elsewhere: int = 0
    elsewhere_example: str = ""
    current: SourceCheck | None = None
    findings: list[str] = field(default_factory=list)
    not_read: list[str] = field(default_factory=list)
    deep: list[Finding] | None = None
    not_compared: list[str] = field(default_factory=list)
    table: TableCheck | None = None
    dead_letters: int = 0
    dead_letter_objects: list[str] = field(default_factory=list)


@action(
    given.places("s3_source_uri", "s3_destination_uri"),
    Option(
        "--sources",
        is_flag=True,
        help="also read every source: compare those that still exist, and distinguish those that"
        " clean-up deleted from missing ones",
    ),
    Option(
        "--deep",
        is_flag=True,
        help="also compare the records of every output with those of its sources, as DuckDB reads"
        " both; needs the extra query",
    ),
    given.COMMON,
    given.fields("s3_state_uri"),
)
def run(args: Args) -> int:
    """Verify every commit in the state, of any date.

    Raises:
        InvalidInput: there is no state, or a bucket cannot be read.
        Failure: there are findings; each was printed as one line.
    """
    settings = Settings.from_input(given.fields_from(args))
    store = open_store(args.endpoint_url, settings.state.bucket)
    checked = check(settings, store, sources=args.sources, deep=args.deep)
    if args.json:
        print(json.dumps(asdict(checked), indent=2))
    else:
        _show(checked)
    if checked.findings:
        raise Failure(f"IntegrityError: {plural(len(checked.findings), 'finding')}")
    if checked.elsewhere and not checked.commits:
        raise InvalidInput(
            "s3_source_uri",
            settings.source.uri,
            f"the source of these outputs; {_elsewhere(checked)}",
        )
    return 0


def check(
    settings: Settings,
    store: ObjectStore,
    *,
    sources: bool,
    deep: bool = False,
    catalog: OpenCatalog | None = None,
) -> Checked:
    """Verify outputs against commits, and commits against each other.

    Args:
        settings: source, destination and state.
        store: where they are.
        sources: also read the sources that still exist.
        deep: also compare records as DuckDB reads them, if it is installed.
        catalog: opens the destination's table, if it has one; by default by its address.

    Raises:
        InvalidInput: there is no state, or a bucket cannot be read.
    """
    with progress("listing the commit logs"):
        logs = all_logs(settings.state, store)
    work = _Check(settings, store, catalog or open_catalog)
    work.checked.current = SourceCheck() if sources else None
    if deep and is_installed("query"):
        work.checked.deep = []
    elif deep:
        work.checked.not_compared.append(
            f"records are not compared without {install_command('query')}"
        )
    work.look_at_table()
    with progress("verifying", sum(len(log.keys) for log in logs)) as bar:
        work.check_logs(logs, bar)
    with progress("looking for objects without a commit"):
        work.find_unnamed()
    if work.checked.current is not None:
        work.checked.findings += work.checked.current.findings
    return work.checked


class _Check:
    def __init__(self, settings: Settings, store: ObjectStore, catalog: OpenCatalog) -> None:
        self.checked = Checked()
        self._open_catalog = catalog
        self._table: TableProof | None = None
        self._settings = settings
        self._store = store
        self._sources = Sources(settings, store)
        self._seen: dict[bytes, str] = {}
        self._named: set[str] = set()
        self._all_read = True

    def look_at_table(self) -> None:
        """Open the destination's table, if it has one, and check that it is the same table."""
        try:
            self._table = look_at_table(self._settings, self._store, self._open_catalog)
        except IntegrityError as error:
            self.checked.findings.append(str(error))
        if self._table is not None:
            self.checked.table = TableCheck(self._table.address)

    def check_logs(self, logs: Sequence[StoredLog], bar: Bar) -> None:
        with ThreadPoolExecutor(_CONCURRENT) as pool:
            commits = filter(self._is_judged, self._commits(logs))
            while batch := list(islice(commits, _CONCURRENT)):
                for one, found in zip(batch, pool.map(self._read, batch), strict=True):
                    self._count(one)
                    self._count_in_table(one, found.table)
                    self.checked.findings += found.findings
                    self.checked.not_read += found.not_read
                    is_sound = not (found.findings or found.not_read or found.table)
                    if self.checked.deep is not None and is_sound:
                        self._compare_records(one, self.checked.deep)
                    bar.advance()
                if self.checked.current is not None:
                    for current in pool.map(self._read_sources, batch):
                        self.checked.current.add(current)

    def _commits(self, logs: Sequence[StoredLog]) -> Iterator[_One]:
        for log in logs:
            name = log.path or "(root)"
            for sequence in log.missing:
                self.checked.findings.append(f"{name}: log entry {sequence} is missing")
            try:
                for commit in log.newest_first(self._store):
                    self._count_dead_letters(commit)
                    yield _One(f"{name} commit {commit.sequence}", commit, log)
            except (IntegrityError, InvalidInput) as error:
                self.checked.findings.append(_line_of(error))
                self._all_read = False

    def _count_dead_letters(self, commit: Commit) -> None:
        dead = commit.dead_letters
        if dead is not None:
            self.checked.dead_letters += dead.records
            self.checked.dead_letter_objects.append(f"s3://{dead.bucket}/{dead.key}")

    def _is_judged(self, one: _One) -> bool:
        """Return whether a commit is of this source; several sources may share a destination."""
        commit, checked = one.commit, self.checked
        if commit.output is not None:
            self._named.add(commit.output.key)
        if not commit.sources or own_sources(commit, self._settings.source):
            return True
        first = commit.sources[0]
        checked.elsewhere_example = checked.elsewhere_example or f"s3://{first.bucket}/{first.key}"
        checked.elsewhere += 1
        return False

    def _read(self, one: _One) -> Checked:
        """Verify one output; called concurrently."""
        name, commit, _ = one
        found = Checked()
        try:
            if self._is_gone_into_table(one):
                found.table = TableCheck("", rewritten=1)
                return found
            check_commit(commit, self._store)
        except ObjectArchived:
            self._look_at(name, commit, found)
        except (IntegrityError, InvalidInput) as error:
            found.findings.append(_with_output(name, commit, _line_of(error)))
        return found

    def _compare_records(self, one: _One, findings: list[Finding]) -> None:
        """Compare records; one commit at a time, whose bytes are stored on this machine."""
        from compactor_cli.plain_files import NotCompared  # noqa: PLC0415 - with an extra
        from compactor_cli.record_comparison import compare  # noqa: PLC0415 - with an extra - its packages are an extra's

        name, commit, _ = one
        where = _where(commit)
        try:
            finding = compare(commit, self._store)
        except NotCompared as error:
            self.checked.not_compared.append(f"{name}: {where}: records not compared: {error}")
        except (IntegrityError, InvalidInput) as error:
            self.checked.findings.append(_with_output(name, commit, _line_of(error)))
        else:
            if finding is not None:
                findings.append(finding)
                self.checked.findings.append(f"{name}: {where}: {_seen(finding)}")

    def _is_gone_into_table(self, one: _One) -> bool:
        """Return whether an output was added to the table and has since been deleted by it.

        Raises:
            IntegrityError: its rows are not all in the table, or this cannot be proven.
        """
        table, output = self._table, one.commit.output
        if table is None or output is None or not table.has(one.log.path, one.commit):
            return False
        if self._store.head(output.bucket, output.key) is not None:
            return False
        table.require_rows(output, stands=False)
        return True

    def _count_in_table(self, one: _One, found: TableCheck | None) -> None:
        count, table = self.checked.table, self._table
        if count is None or table is None or one.commit.output is None:
            return
        is_in = table.has(one.log.path, one.commit)
        count.outputs += is_in
        count.waiting += not is_in
        count.rewritten += found.rewritten if found is not None else 0

    def _look_at(self, name: str, commit: Commit, found: Checked) -> None:
        try:
            facts = check_heads(commit, self._store)
            found.not_read.append(f"{name}: not read: archived: {facts}")
        except (IntegrityError, InvalidInput) as error:
            found.findings.append(_with_output(name, commit, _line_of(error)))

    def _read_sources(self, one: _One) -> SourceCheck:
        return self._sources.check(one.commit, one.log)

    def _count(self, one: _One) -> None:
        name, commit, _ = one
        checked = self.checked
        checked.commits += 1
        checked.sources += len(commit.rows)
        self._find_doubles(name, commit)
        if commit.output is not None:
            checked.outputs += 1
            checked.records += commit.output.records or 0

    def _find_doubles(self, name: str, commit: Commit) -> None:
        for row in commit.rows:
            identity = row.source.identity
            if identity in self._seen:
                line = f"{name}: {row.source.key} is also in {self._seen[identity]}"
                self.checked.findings.append(line)
            self._seen[identity] = name

    def find_unnamed(self) -> None:
        if not self._all_read:
            # An unreadable entry may name any object.
            return
        place = self._settings.destination
        for page in self._store.list_objects(place.bucket, place.prefix):
            for one in page:
                if one.key not in self._named and not one.key.endswith("/"):
                    line = f"s3://{place.bucket}/{one.key}: not named by any commit"
                    self.checked.findings.append(line)


def _line_of(error: IntegrityError | InvalidInput) -> str:
    """Return the fault of one object; an error that concerns all of them is raised."""
    if isinstance(error, InvalidInput):
        if error.field not in _OF_ONE_OBJECT:
            raise error
        return f"not read: {error}"
    return str(error)


def _with_output(name: str, commit: Commit, line: str) -> str:
    where = _where(commit)
    return f"{name}: {line}" if where in line else f"{name}: {where}: {line}"


def _where(commit: Commit) -> str:
    return f"s3://{commit.output.bucket}/{commit.output.key}" if commit.output else ""


def _seen(one: Finding) -> str:
    shown = ", ".join(map(visible, one.sources[:_SHOWN_KEYS]))
    more = len(one.sources) - _SHOWN_KEYS
    keys = f"{shown} and {more:,} more" if more > 0 else shown
    counts = f"{one.records_in:,} records in, {one.records_out:,} out"
    return f"{one.kind}: {counts}: {one.detail} ({keys})"


def _show(checked: Checked) -> None:
    for line in checked.findings:
        print_error(" ".join(line.split()))
    for line in (*checked.not_read, *checked.not_compared):
        print_line(" ".join(line.split()))
    verdict = "wrong" if checked.findings else "sound"
    if checked.not_read:
        verdict += f", but {plural(len(checked.not_read), 'archived output')} could not be read"
    print_line(
        f"{verdict}: {plural(checked.commits, 'commit')}, {plural(checked.outputs, 'output')},"
        f" {plural(checked.sources, 'source')}, {plural(checked.records, 'record')}"
    )
    if checked.dead_letters:
        _show_dead_letters(checked)
    if checked.elsewhere:
        print_line(_elsewhere(checked))
    if checked.table is not None:
        _show_table(checked.table)
    if checked.current is not None:
        _show_sources(checked.current)


def _show_dead_letters(checked: Checked) -> None:
    print_line(f"{plural(checked.dead_letters, 'dead-letter record')} in no output, kept in")
    for where in checked.dead_letter_objects[:_SHOWN_KEYS]:
        print_line(f"  {where}")
    more = len(checked.dead_letter_objects) - _SHOWN_KEYS
    if more > 0:
        print_line(f"  and {plural(more, 'more object')}; --json lists all")


def _elsewhere(checked: Checked) -> str:
    commits = plural(checked.elsewhere, "commit")
    return f"{commits} of other sources not verified, such as that of {checked.elsewhere_example}"


def _show_sources(current: SourceCheck) -> None:
    for line in (*current.not_read, *current.missing_in):
        print_line(" ".join(line.split()))
    counts = {
        "equal": current.equal,
        "changed": current.changed,
        "deleted by clean-up": current.deleted_by_clean_up,
        "missing": current.missing,
        "archived": current.archived,
        "denied": current.denied,
        "not compared": current.not_compared,
        "with other bytes": current.differs,
    }
    # The first four are always shown, to confirm that nothing is missing.
    shown = [
        f"{n:,} {what}" for i, (what, n) in enumerate(counts.items()) if n or i < _ALWAYS_SHOWN
    ]
    print_line(f"sources now: {', '.join(shown)}")


def _show_table(table: TableCheck) -> None:
    waiting = f", {table.waiting:,} not in it yet" if table.waiting else ""
    print_line(f"{table.address}: {plural(table.outputs, 'output')} in the table{waiting}")
    if table.rewritten:
        print_line(
            f"{table.rewritten:,} of these no longer exist; the table has rewritten their rows"
        )
