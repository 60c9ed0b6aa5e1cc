"""The Python API: ``compactor.run()`` and the other public names of the package.

For notebooks and schedulers: typed results with a display form, errors of :mod:`compactor.errors`,
progress by callback; nothing is printed. Credentials, region and, by default, the endpoint are
found as boto3 finds them. docs/python.md has an example of each function.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compactor.cleaning.clean_partition import Decision
from compactor.clock import SystemClock, new_run_id
from compactor.discovery.work_list import Discovery
from compactor.errors import IntegrityError, InvalidInput, PartitionsFailed, TimeRanOut
from compactor.report.reasons import hint_of
from compactor.report.rendering import Shown
from compactor.report.report import RunReport
from compactor.settings.settings import Settings, default_state_uri
from compactor.settings.uris import S3Uri
from compactor.sizes import human_bytes, plural
from compactor_cli.cleaning import DELETE_AFTER, Cleaning, Done
from compactor_cli.commands.plan import Forecast, find, forecast, skips
from compactor_cli.commands.verify import Checked, check
from compactor_cli.console import OnStep, Step, heard_by
from compactor_cli.restore_search import Wish, search
from compactor_cli.restore_targets import Restored, restore_all, targets_at
from compactor_cli.store import open_store
from compactor_cli.whole import Machine, default_workers, require_time_limit, run_here

__all__ = [
    "CleanUp",
    "Plan",
    "Restored",
    "RunReport",
    "Step",
    "Verification",
    "clean_up",
    "plan",
    "restore",
    "run",
    "verify",
]

_SHOWN_LINES = 20


class _Result:
    """A result with a text form and an HTML form for notebooks."""

    def _shown(self) -> Shown:
        raise NotImplementedError

    def __str__(self) -> str:
        return self._shown().as_text()

    def _repr_html_(self) -> str:
        return self._shown().as_html()


@dataclass(frozen=True)
class Plan(_Result):
    """What a run would do now.

    Attributes:
        found: the partitions.
        forecasts: the plan of each partition for a single worker, and what is left to Spark.
    """

    found: Discovery
    forecasts: Sequence[Forecast]

    @property
    def objects(self) -> int:
        """Sources that would be compacted, without those for Spark."""
        return sum(one.objects for one in self.forecasts)

    @property
    def bytes(self) -> int:
        """Listed bytes of the sources."""
        return sum(one.bytes for one in self.forecasts)

    @property
    def outputs(self) -> int:
        """Objects that would be written."""
        return sum(len(one.plan.groups) for one in self.forecasts)

    @property
    def skipped(self) -> Mapping[str, int]:
        """Objects that would be skipped, by reason."""
        return skips(self.found, self.forecasts)

    def _shown(self) -> Shown:
        rows = (
            ("Partitions", f"{len(self.forecasts):,}"),
            ("Outputs", f"{self.outputs:,}"),
            ("Objects", f"{self.objects:,}"),
            ("Bytes", human_bytes(self.bytes)),
        )
        lines = [
            f"skipped: {n:,}, {reason}{hint_of(reason)}"
            for reason, n in sorted(self.skipped.items())
        ]
        lines += [
            f"for Spark: {one.path or '(root)'}" for one in self.forecasts if one.beyond.objects
        ]
        return Shown("What a run would do now (nothing was written)", ("", "Planned"), rows, lines)


@dataclass(frozen=True)
class Verification(_Result):
    """The result of ``verify``.

    Attributes:
        checked: counts and findings.
    """

    checked: Checked

    @property
    def sound(self) -> bool:
        """Whether there are no findings."""
        return not self.checked.findings

    @property
    def findings(self) -> Sequence[str]:
        """One line per fault."""
        return self.checked.findings

    def check(self) -> None:
        """Raise an error if there are findings.

        Raises:
            IntegrityError: there are; the message has the first one.
        """
        if self.findings:
            raise IntegrityError(f"{plural(len(self.findings), 'finding')}: {self.findings[0]}")

    def _shown(self) -> Shown:
        checked = self.checked
        names = ("commits", "outputs", "sources", "records")
        rows = [(name.capitalize(), f"{getattr(checked, name):,}") for name in names]
        rows.append(("Findings", f"{len(checked.findings):,}"))
        lines = [*checked.findings, *checked.not_read, *checked.not_compared][:_SHOWN_LINES]
        return Shown("sound" if self.sound else "wrong", ("", "Checked"), rows, lines)


@dataclass(frozen=True)
class CleanUp(_Result):
    """What clean-up may delete, and what it deleted.

    Attributes:
        decisions: one per partition with commits past retention.
        done: None without ``delete=True``, or if there was nothing to delete.
    """

    decisions: Sequence[Decision]
    done: Done | None

    @property
    def due(self) -> int:
        """Sources that may be deleted."""
        return sum(due.sources for one in self.decisions for due in one.due)

    @property
    def deleted(self) -> int:
        """Sources that were deleted."""
        return 0 if self.done is None else self.done.deleted

    @property
    def findings(self) -> Sequence[str]:
        """Why sources past retention are kept, one line each."""
        lines = [line for one in self.decisions for line in one.unsafe]
        lines += [f"{one.path or '(root)'}: {one.error}" for one in self.decisions if one.error]
        if self.done is not None:
            lines += [*self.done.unsafe, *self.done.failures, *self.done.refusals]
        return lines

    def _shown(self) -> Shown:
        rows = (("Sources", f"{self.due:,}", f"{self.deleted:,}"),)
        return Shown("Clean-up", ("", "Due", "Deleted"), rows, self.findings[:_SHOWN_LINES])


def plan(
    source: str,
    destination: str,
    *,
    endpoint_url: str | None = None,
    on_progress: OnStep | None = None,
    **fields: Any,
) -> Plan:
    """Return what a run with the same arguments would do now; read-only.

    Args:
        source: an S3 URI such as ``s3://my-logs/raw/``.
        destination: an S3 URI for the outputs.
        endpoint_url: of an S3-compatible store; None for AWS, or what the environment names.
        on_progress: called with the progress of each step, perhaps by another thread.
        fields: of a run's input, such as ``date_format``; docs/settings.md lists them.

    Raises:
        InvalidInput: an argument is invalid; the error names it.
        TransientStoreError: the endpoint does not answer.
    """
    settings = _settings(source, destination, fields)
    store = open_store(endpoint_url, settings.state.bucket)
    with heard_by(on_progress or _ignore):
        found = find(settings, store)
        return Plan(found, forecast(found.partitions, settings, store))


def run(
    source: str,
    destination: str,
    *,
    workers: int | None = None,
    endpoint_url: str | None = None,
    on_progress: OnStep | None = None,
    log: str | os.PathLike[str] | None = None,
    time_limit_seconds: float | None = None,
    **fields: Any,
) -> RunReport:
    """Compact, clean up where ``delete_after`` asks for it, and report.

    An interrupt ends the run between two requests; committed work is kept.

    Args:
        source: as for :func:`plan`.
        destination: as there.
        workers: processes; by default two for each CPU up to four, then one for each CPU.
        endpoint_url: as there.
        on_progress: as there.
        log: a file to which the workers append their logs; None discards them.
        time_limit_seconds: at least 120; no partition is started with less than a minute of it
            left; None for no limit.
        fields: as there.

    Raises:
        InvalidInput: an argument is invalid; nothing was done.
        PartitionsFailed: some partitions failed and all others are done; ``report`` of the error
            is the run's report. Run it again for the rest.
        TimeRanOut: the time limit was reached with partitions ``left``. Run it again for those.
        TransientStoreError: the endpoint does not answer.
    """
    if workers is not None and workers < 1:
        raise InvalidInput("workers", workers, "1 or more")
    limit = require_time_limit("time_limit_seconds", time_limit_seconds)
    settings = _settings(source, destination, fields)
    open_store(endpoint_url, settings.state.bucket)
    machine = Machine(
        workers or default_workers(),
        endpoint_url,
        Path(log) if log else None,
        time_limit_seconds=limit,
    )
    with heard_by(on_progress or _ignore):
        done = run_here(settings, machine)
    report = done.report
    if report is None:
        raise TimeRanOut(done.stands, done.left)
    if report.status == "failed":
        raise PartitionsFailed(report.cause, report)
    return report


def verify(
    source: str,
    destination: str,
    *,
    sources: bool = False,
    deep: bool = False,
    endpoint_url: str | None = None,
    on_progress: OnStep | None = None,
    **fields: Any,
) -> Verification:
    """Read every output again and check it against its commit; read-only.

    Args:
        source: as for :func:`plan`.
        destination: as there.
        sources: also read every source that still exists and compare it; ``checked.current``
            counts the results.
        deep: also compare records, as DuckDB reads outputs and sources; needs the extra ``query``.
        endpoint_url: as there.
        on_progress: as there.
        fields: as there; ``s3_state_uri`` if the run had one.

    Raises:
        InvalidInput: there is no state, or a bucket cannot be read.
        TransientStoreError: the endpoint does not answer.
    """
    settings = _settings(source, destination, fields)
    store = open_store(endpoint_url, settings.state.bucket)
    with heard_by(on_progress or _ignore):
        return Verification(check(settings, store, sources=sources, deep=deep))


def restore(
    destination: str,
    keys: Sequence[str] = (),
    *,
    to: str | os.PathLike[str],
    prefix: str | None = None,
    glob: str | None = None,
    overwrite: bool = False,
    s3_state_uri: str | None = None,
    endpoint_url: str | None = None,
    on_progress: OnStep | None = None,
) -> list[Restored]:
    """Restore sources from their outputs; returns where each is now, and in what form.

    Args:
        destination: of the runs that compacted them.
        keys: whole keys of sources.
        to: the directory or S3 URI to write below; sources keep their keys.
        prefix: instead of keys: the newest version of every source whose key begins with this.
        glob: instead of keys, also with a prefix: every source whose whole key matches.
        overwrite: replace existing files or objects.
        s3_state_uri: if the run had one.
        endpoint_url: as for :func:`plan`.
        on_progress: as there.

    Raises:
        InvalidInput: no commit names a key, an output holds only rows of a source, or something
            would be overwritten; nothing was written.
        IntegrityError: an output is missing or damaged; nothing was written from it.
        TransientStoreError: the endpoint does not answer.
    """
    if bool(keys) == bool(prefix or glob) or isinstance(keys, str):
        raise InvalidInput("keys", keys, "a list of keys, or a prefix or glob instead")
    place = S3Uri.parse("s3_destination_uri", destination)
    state = S3Uri.parse("s3_state_uri", s3_state_uri or default_state_uri(place.uri))
    store = open_store(endpoint_url, state.bucket)
    with heard_by(on_progress or _ignore):
        found = search(Wish(keys, prefix, glob), state, store)
        if found.rows_only:
            accepted = "sources whose outputs hold bytes; the output of this one holds rows"
            raise InvalidInput("prefix", found.rows_only[0], accepted)
        targets = targets_at(to, (place, state), store, overwrite=overwrite)
        return list(restore_all(found, targets, store))


def clean_up(
    source: str,
    destination: str,
    *,
    delete: bool = False,
    endpoint_url: str | None = None,
    on_progress: OnStep | None = None,
    **fields: Any,
) -> CleanUp:
    """Decide which sources may be deleted; with ``delete=True``, delete exactly those.

    Only sources whose commits are past retention and whose outputs are verified. Deleting also
    removes state files that are older than 90 days.

    Args:
        source: as for :func:`plan`.
        destination: as there.
        delete: False only decides, and writes nothing.
        endpoint_url: as there.
        on_progress: as there.
        fields: as there; most importantly ``delete_after``, by default 30 days.

    Raises:
        InvalidInput: an argument is invalid, or the store lacks conditions that deleting requires.
        TransientStoreError: the endpoint does not answer.
    """
    settings = _settings(source, destination, {"delete_after": DELETE_AFTER, **fields})
    store = open_store(endpoint_url, settings.state.bucket)
    cleaning = Cleaning(settings, store, SystemClock(), new_run_id())
    with heard_by(on_progress or _ignore):
        decisions = cleaning.decide()
        if not delete or not any(one.due or one.orphans for one in decisions):
            return CleanUp(decisions, None)
        cleaning.ask_store()
        return CleanUp(decisions, cleaning.act(decisions))


def _settings(source: str, destination: str, fields: Mapping[str, Any]) -> Settings:
    given = {"s3_source_uri": source, "s3_destination_uri": destination}
    return Settings.from_input({**given, **fields})


def _ignore(step: Step) -> None:
    """Discard progress without a callback; a bar would disturb the caller's output."""
