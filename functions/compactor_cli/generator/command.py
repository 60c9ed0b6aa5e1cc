"""The options and the run of ``compactor generate``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from compactor.errors import InvalidInput
from compactor_cli.console import progress
from compactor_cli.generator.objects import generate
from compactor_cli.generator.output import DEFAULT_WORKERS, Written, write
from compactor_cli.generator.spec import (
    CompressionChoice,
    GeneratorSpec,
    LogFormat,
    parse_formats,
    parse_start,
)
from compactor_cli.messages import form

_DEFAULT = GeneratorSpec()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add every option of ``compactor generate`` to a parser."""
    _add_output(parser)
    _add_amounts(parser)
    _add_dates(parser)
    _add_rates(parser)


def run(args: argparse.Namespace) -> int:
    """Generate and write what the parsed options ask for; returns the exit code.

    Standard output gets one summary line, or one JSON document with ``--json``; standard error
    gets a progress bar, or now and then a line.

    Raises:
        InvalidInput: for a wrong option.
        TransientStoreError: the store does not answer.
    """
    output_uri = _output_uri(args)
    spec = _spec(args)
    with _progress(spec.objects) as on_progress:
        written = write(
            generate(spec),
            output_uri,
            workers=args.workers,
            endpoint_url=args.endpoint_url,
            on_progress=on_progress,
        )
    print(_json(written, output_uri) if args.json else _summary(written, output_uri))
    return 0


def _add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument("output", nargs="?", help="s3://BUCKET/PREFIX or a local directory")
    group.add_argument("-b", "--bucket", help="S3 bucket, instead of OUTPUT")
    group.add_argument("--prefix", help="prefix in that bucket (only with --bucket)")
    group.add_argument("--endpoint-url", help="S3-compatible endpoint (default: AWS settings)")
    group.add_argument(
        "--workers", type=int, default=DEFAULT_WORKERS, help="writing threads (%(default)s)"
    )
    group.add_argument("--json", action="store_true", help="print the summary as JSON")


def _add_amounts(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("amounts and formats")
    group.add_argument(
        "-f", "--files", type=int, default=_DEFAULT.objects, help="number of objects (%(default)s)"
    )
    group.add_argument(
        "-r", "--rows", type=int, default=_DEFAULT.rows, help="mean rows per object (%(default)s)"
    )
    group.add_argument(
        "--format",
        action="append",
        metavar="FORMAT",
        help=f"{', '.join(LogFormat)} or mixed; repeatable or comma separated (json)",
    )
    group.add_argument(
        "--compression",
        choices=[str(choice) for choice in CompressionChoice],
        default=str(_DEFAULT.compression),
        help="native: as the real system writes (%(default)s)",
    )
    group.add_argument(
        "--seed",
        type=int,
        default=_DEFAULT.seed,
        help="same seed and options, same objects (%(default)s)",
    )
    group.add_argument(
        "--accounts", type=int, default=_DEFAULT.accounts, help="AWS accounts (%(default)s)"
    )
    group.add_argument(
        "--regions", type=int, default=_DEFAULT.regions, help="AWS regions (%(default)s)"
    )


def _add_dates(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("dates (UTC)")
    group.add_argument(
        "--start",
        default=_DEFAULT.start.isoformat(),
        metavar="DATE",
        help="first day: YYYY-MM-DD, today or today-N (%(default)s)",
    )
    group.add_argument(
        "--days", type=int, default=_DEFAULT.days, help="days from there (%(default)s)"
    )
    group.add_argument(
        "--date-format",
        default=_DEFAULT.date_format,
        help="date part of the keys (%(default)s)".replace("%Y", "%%Y"),
    )


def _add_rates(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("irregularities (0 to 1)")
    for name, what in (
        ("empty_rate", "objects without a record"),
        ("late_rate", "objects hours late (kept in a directory; S3 sets its own time)"),
        ("missing_newline_rate", "objects whose last line has no newline"),
    ):
        option = "--" + name.replace("_", "-")
        default = getattr(_DEFAULT, name)
        group.add_argument(option, type=float, default=default, help=f"{what} (%(default)s)")
    group.add_argument(
        "--size-sigma",
        type=float,
        default=_DEFAULT.size_sigma,
        help="spread of the log-normal rows per object, 0 to 2 (%(default)s)",
    )


def _output_uri(args: argparse.Namespace) -> str:
    """Return the output URI, from OUTPUT or from --bucket and --prefix."""
    if args.output is not None:
        if args.bucket is not None:
            raise InvalidInput("bucket", args.bucket, "either OUTPUT or --bucket, not both")
        if args.prefix is not None:
            raise InvalidInput("prefix", args.prefix, "--prefix only together with --bucket")
        return str(args.output)
    if args.bucket is None:
        raise InvalidInput("output", None, "s3://BUCKET/PREFIX, a local directory, or --bucket")
    if "/" in args.bucket or not args.bucket:
        raise InvalidInput("bucket", args.bucket, "the name of a bucket, without s3:// or /")
    return f"s3://{args.bucket}/{(args.prefix or '').strip('/')}"


def _spec(args: argparse.Namespace) -> GeneratorSpec:
    return GeneratorSpec(
        objects=args.files,
        rows=args.rows,
        formats=parse_formats(args.format or [LogFormat.JSON]),
        start=parse_start(args.start),
        days=args.days,
        date_format=args.date_format,
        seed=args.seed,
        compression=CompressionChoice(args.compression),
        empty_rate=args.empty_rate,
        late_rate=args.late_rate,
        missing_newline_rate=args.missing_newline_rate,
        size_sigma=args.size_sigma,
        accounts=args.accounts,
        regions=args.regions,
    )


@contextmanager
def _progress(objects: int) -> Iterator[Callable[[Written], None]]:
    """Show a progress bar on standard error; lines if it is not a terminal."""
    if form().is_quiet or form().as_json or not sys.stderr.isatty():
        with progress("generating", objects) as lines:
            yield lambda done: lines.show(done.objects, objects)
        return
    columns = (
        TextColumn("generating"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("generating", total=objects, rate="")
        yield lambda done: bar.update(
            task, completed=done.objects, rate=f"{done.objects_per_second:,.0f}/s"
        )


def _summary(written: Written, output_uri: str) -> str:
    return (
        f"{written.objects:,} objects, {written.records:,} records, {written.bytes:,} bytes "
        f"in {written.seconds:.1f} s ({written.objects_per_second:,.0f} objects/s) "
        f"to {output_uri}"
    )


def _json(written: Written, output_uri: str) -> str:
    return json.dumps(
        {
            "output": output_uri,
            "objects": written.objects,
            "records": written.records,
            "bytes": written.bytes,
            "seconds": round(written.seconds, 3),
            "objects_per_second": round(written.objects_per_second, 1),
        }
    )
