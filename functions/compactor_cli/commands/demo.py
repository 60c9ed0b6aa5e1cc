"""``compactor demo``: runs the whole workflow on an embedded S3, and verifies its result."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path

import click

from compactor.errors import InvalidInput
from compactor.settings.settings import Settings
from compactor.sizes import plural
from compactor_cli import parameters as given
from compactor_cli.command_line import Args, Option, action
from compactor_cli.commands.run import WORKERS
from compactor_cli.commands.verify import Checked, check
from compactor_cli.console import Bar, print_line, print_note, progress
from compactor_cli.demo_objects import (
    BUCKET,
    DESTINATION_URI,
    SOURCE_URI,
    Seed,
    from_directory,
    generated,
)
from compactor_cli.demo_run import execute
from compactor_cli.failures import Failure
from compactor_cli.machine.extras import require
from compactor_cli.one_run import EndedRun, fetch_report
from compactor_cli.pages import require_directory
from compactor_cli.store import open_store
from compactor_cli.summary import print_summary
from compactor_cli.whole import Machine
from compactor_local.embedded import EmbeddedS3, SeedObject, embedded_s3, in_environment

_REPORT_DIRECTORY = Path("build", "demo")
_LAST_PORT = 65_535


@action(
    Option(
        "--source",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="logs to copy into the embedded S3",
    ),
    Option(
        "--objects",
        type=int,
        default=2_000,
        metavar="N",
        help="without --source: number of objects to generate (2000)",
    ),
    Option(
        "--ingest",
        is_flag=True,
        help="ingest objects into an Iceberg table by events, while they are written; runs in this"
        " process, without --workers, --log and --report-dir",
    ),
    Option("--keep", is_flag=True, help="keep the embedded S3 running until Ctrl-C"),
    Option(
        "--port",
        type=int,
        default=0,
        metavar="N",
        help="port of the embedded S3 on 127.0.0.1 (by default any free port)",
    ),
    Option(
        "--report-dir",
        type=click.Path(path_type=Path),
        default=_REPORT_DIRECTORY,
        metavar="DIR",
        help=f"directory for report.html and report.json ({_REPORT_DIRECTORY})",
    ),
    given.JSON,
    WORKERS,
    given.LOG,
)
def run(args: Args) -> int:
    """Seed the embedded S3, run, verify as ``verify --deep`` does, and print the result.

    Raises:
        InvalidInput: an option is invalid.
        Failure: the run failed, or an output does not have the records of its sources.
    """
    _check_port(args.port)
    if args.ingest:
        return _ingest(args)
    require_directory("--report-dir", args.report_dir)
    seed = generated(args.objects) if args.source is None else from_directory(args.source)
    given = {**seed.fields, "s3_destination_uri": DESTINATION_URI}
    settings = Settings.from_input(given)
    with _served(args.port) as server, in_environment(server.environment):
        _sow(server, seed)
        store = open_store(server.endpoint_url, BUCKET)
        machine = Machine(args.workers, server.endpoint_url, args.log)
        execution = execute(given, settings, store, machine)
        if execution.report is None:
            execution.check()
        pages = fetch_report(execution, settings, store, args.report_dir)
        verified = check(settings, store, sources=False, deep=True)
        _show(execution, verified, seed.count, pages, as_json=args.json)
        if args.keep:
            _keep(server)
    execution.check()
    _require_sound(verified)
    return 0


def _require_sound(verified: Checked) -> None:
    if verified.findings:
        raise Failure("; ".join(verified.findings))
    if not verified.sources:
        raise Failure("nothing was compacted")


def _ingest(args: Args) -> int:
    if args.source is not None:
        message = "--source and --ingest exclude each other"
        raise InvalidInput("--source", str(args.source), "one of them", message=message)
    require("lake", "a lake on this machine")
    from compactor_cli.commands import demo_ingest  # noqa: PLC0415 - its packages are an extra's

    with _served(args.port, lake=True) as server, in_environment(server.environment):
        return demo_ingest.run(args, server)


@contextmanager
def _served(port: int, *, lake: bool = False) -> Iterator[EmbeddedS3]:
    """Start the embedded S3 and stop it at the end."""
    with ExitStack() as ended:
        with progress("starting the embedded S3"):
            server = ended.enter_context(embedded_s3(port=port, lake=lake))
        yield server


def _check_port(port: int) -> None:
    """Check that the port can be listened on; 0 means any free port.

    Raises:
        InvalidInput: it is not a port, or is in use.
    """
    if not 0 <= port <= _LAST_PORT:
        raise InvalidInput("--port", port, f"a port from 1 to {_LAST_PORT:,}")
    with socket.socket() as tried:
        # As the server does, so that connections in TIME_WAIT do not block the port.
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", port))
        except OSError as error:
            free = f"a port that is free and may be used ({error.strerror})"
            raise InvalidInput("--port", port, free) from None


def _sow(server: EmbeddedS3, seed: Seed) -> None:
    with progress("seeding the embedded S3", seed.count) as bar:
        server.seed(BUCKET, _counted(seed.objects, bar))


def _counted(objects: Iterable[SeedObject], bar: Bar) -> Iterator[SeedObject]:
    for one in objects:
        yield one
        bar.advance()


def _show(
    execution: EndedRun, verified: Checked, objects: int, pages: list[Path], *, as_json: bool
) -> None:
    if as_json:
        document = {
            **execution.to_dict(),
            "verified": asdict(verified),
            "pages": [str(page) for page in pages],
        }
        print(json.dumps(document, indent=2), flush=True)
        return
    if execution.report is not None:
        print_summary(execution.report, execution.result.seconds)
    if verified.sources and not verified.findings:
        how = "verified" if verified.deep is None else "verified as by verify --deep"
        text = (
            f"{how}: {plural(verified.records, 'record')} of"
            f" {plural(verified.sources, 'source')} are in exactly one of"
            f" {plural(verified.outputs, 'output')}"
        )
        print_line(text, "bold green")
    if objects > verified.sources:
        print_line(f"left alone: {plural(objects - verified.sources, 'object')}")
    print_line(f"report: {' and '.join(str(page) for page in pages)}")


def _keep(server: EmbeddedS3) -> None:
    """Wait for Ctrl-C; prints to standard error, to keep the --json output clean."""
    print_note(f"the embedded S3 runs at {server.endpoint_url} until Ctrl-C; in another terminal:")
    print_note(
        "  export AWS_ACCESS_KEY_ID=embedded AWS_SECRET_ACCESS_KEY=embedded AWS_REGION=us-east-1"
    )
    print_note(
        f"  compactor verify {SOURCE_URI} {DESTINATION_URI} --endpoint-url {server.endpoint_url}"
    )
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        return
