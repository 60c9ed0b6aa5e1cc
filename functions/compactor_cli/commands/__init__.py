"""``compactor``: the command line.

    demo       the whole workflow on an embedded S3             demo
    scan       what lies below a prefix, and what to do next    scan, ../scanned.py, ../jobs.py
    plan       what a run would do                              plan
    run        a run against any S3                             run, ../one_run.py, ../whole.py
    probe      which conditions a store honours                 probe
    verify     checks every commit against its output           verify
    ls         sources that restore can return                  ls
    restore    rebuilds sources from their outputs              restore
    locate     finds the source of a record                     locate
    manifest   exports where every source is                    manifest, ../mapping.py
    query      SQL over outputs                                 query, ../duck.py
    clean-up   deletes sources past retention                   clean_up, ../cleaning.py
    adopt      rebuilds a lost commit log                       adopt
    reconcile  registers objects without an event               reconcile
    tables     maintains tables that others write               tables, tables_*, table_input
    table      manages what query engines read                  table

and for a deployed stack, with ../deployed/:

    start      starts a run of the deployed state machine       start
    status     the state of a run, and its failures             status
    report     the report of a run, deployed or not             report

Only the module of the requested command is imported, to keep ``--help`` fast.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

from compactor import __version__
from compactor_cli.commands.account import region_of_environment
from compactor_cli.commands.error_report import print_failure, report_error
from compactor_cli.commands.failures import EXIT_FAILED, EXIT_INTERRUPTED
from compactor_cli.commands.parser import Parser, meant
from compactor_cli.commands.streams import drop_output, require_streams, require_text
from compactor_cli.interrupts import interrupted_by_sigterm
from compactor_cli.messages import Form, own_form, set_form

_EXIT_CODES = (
    "exit codes: 0 done, 1 failed, 2 wrong usage or input, 3 time limit reached,\n"
    "  130 interrupted; errors go to standard error: what happened, then what to do"
)
_EPILOG = f"""\
a first look, then your own data:
  compactor demo
  compactor scan s3://logs/raw/ s3://lake/compacted/ --save logs
  compactor plan logs; compactor run logs; compactor verify logs --deep

{_EXIT_CODES}
"""


@dataclass(frozen=True, slots=True)
class Command:
    """One subcommand; its module has ``add_arguments(parser)`` and ``run(args) -> int``."""

    module: str
    summary: str
    examples: str


COMMANDS: Mapping[str, Command] = {
    "demo": Command(
        "compactor_cli.commands.demo",
        "run the whole workflow on an embedded S3, and verify the result",
        """\
  compactor demo                             2,000 generated objects of four kinds
  compactor demo --source ~/logs             the same on your own logs; they are only read
  compactor demo --objects 200 --keep        leave the embedded S3 running to look around
  compactor demo --json | jq .verified       for scripts
""",
    ),
    "scan": Command(
        "compactor_cli.commands.scan",
        "describe the objects below a prefix, and print plan and run commands for it; read-only",
        """\
  compactor scan s3://my-logs/raw/
  compactor scan s3://my-logs/raw/ s3://my-lake/compacted/ --save logs     then: compactor run logs
  compactor scan s3://my-logs/raw/ --set '*.csv=csv,header=true'
""",
    ),
    "plan": Command(
        "compactor_cli.commands.plan",
        "show what a run would compact, what it would skip and why; read-only",
        """\
  compactor plan s3://my-logs/raw/ s3://my-lake/compacted/ --date-format %Y/%m/%d --duration 30
  compactor plan 's3://my-logs/AWSLogs/*/CloudTrail/*/' s3://my-lake/trail/ \\
      --date-format %Y/%m/%d --start 2026-01-01 --end 2026-01-31
  compactor plan s3://my-logs/raw/ s3://my-lake/compacted/ --depth 2 --json
""",
    ),
    "run": Command(
        "compactor_cli.commands.run",
        "compact on this machine, against AWS or any S3-compatible endpoint",
        """\
  compactor run s3://my-logs/raw/ s3://my-lake/compacted/ --date-format %Y/%m/%d --duration 7
  compactor run --input input.json           what the deployed state machine takes
  compactor run --input input.json --endpoint-url http://127.0.0.1:9000 --workers 8
  AWS_PROFILE=lake compactor run ...         credentials and region as boto3 finds them
""",
    ),
    "probe": Command(
        "compactor_cli.commands.probe",
        "show which conditional requests a store honours, and what changes where it does not",
        """\
  compactor probe s3://my-lake/compacted/ --endpoint-url http://127.0.0.1:9000
  compactor probe s3://my-lake/ --endpoint-url http://127.0.0.1:9000 --json | jq .safe
""",
    ),
    "verify": Command(
        "compactor_cli.commands.verify",
        "read every output again and check it against its commit",
        """\
  compactor verify s3://my-logs/raw/ s3://my-lake/compacted/
  compactor verify s3://my-logs/raw/ s3://my-lake/compacted/ --sources
""",
    ),
    "ls": Command(
        "compactor_cli.commands.ls",
        "list the sources that restore can return",
        """\
  compactor ls s3://my-lake/compacted/
  compactor ls s3://my-lake/compacted/ raw/2026/01/31/ --since 7d
  compactor ls s3://my-lake/compacted/ 'raw/*/error-*.log.gz' --json | jq -r '.[].key'
""",
    ),
    "restore": Command(
        "compactor_cli.commands.restore",
        "rebuild source objects from the outputs that contain them",
        """\
  compactor restore s3://my-lake/compacted/ raw/2026/01/31/a.json > a.json
  compactor restore s3://my-lake/compacted/ --glob 'raw/*/error-*' --since 7d -o back/
""",
    ),
    "explain": Command(
        "compactor_cli.commands.explain",
        "show what is known of one source or output: candidate, commit, published, cleaned up",
        """\
  compactor explain s3://my-lake/compacted/ s3://my-logs/raw/2026/01/31/a.json
  compactor explain s3://my-lake/compacted/ 2026/01/31/a.json --json | jq -r .reason
""",
    ),
    "locate": Command(
        "compactor_cli.commands.locate",
        "find the source object of a record in an output",
        "  compactor locate s3://my-lake/compacted/ compacted/2026/01/31/x.json --record 17\n",
    ),
    "manifest": Command(
        "compactor_cli.commands.manifest",
        "export where each source is in which output, for a query engine to join with",
        "  compactor manifest s3://my-lake/compacted/ > sources.jsonl\n",
    ),
    "query": Command(
        "compactor_cli.commands.query",
        "run SQL over outputs, whose rows are first compared with the commits",
        """\
  compactor query s3://my-lake/compacted/ 'SELECT count(*) FROM records'
  compactor query s3://my-lake/compacted/ 'SELECT _object, count(*) FROM records GROUP BY 1' \\
      --below dt=2026-01-
""",
    ),
    "adopt": Command(
        "compactor_cli.commands.adopt",
        "rebuild a lost commit log, as far as outputs and sources prove it",
        """\
  compactor adopt s3://my-logs/raw/ s3://my-lake/compacted/ --date-format %Y/%m/%d --dry-run
  compactor adopt s3://my-logs/raw/ s3://my-lake/compacted/ --date-format %Y/%m/%d
""",
    ),
    "reconcile": Command(
        "compactor_cli.commands.reconcile",
        "register objects for which no event arrived",
        """\
  compactor reconcile s3://my-logs/raw/ s3://my-lake/compacted/ --depth 1 \\
    --listing events:my-table/logs
  compactor reconcile --stack my-stack       every stream of a deployed stack
  compactor reconcile s3://my-logs/raw/ s3://my-lake/compacted/ --listing events:my-table/logs \\
    --depth 1 --time-limit 600
  compactor reconcile --json | jq .registered
""",
    ),
    "tables": Command(
        "compactor_cli.commands.tables",
        "maintain tables that others write: measure, plan, run",
        """\
  compactor tables scan glue:bronze.events     files, sizes, deletes and snapshots
  compactor tables plan --glue-tables 'bronze.*' --policies policies.json
  compactor tables plan --delta-prefixes s3://my-lake/gold/ --json | jq '.tables[].reason'
  compactor tables plan --input input.json     what the deployed state machine takes
""",
    ),
    "table": Command(
        "compactor_cli.commands.table",
        "let query engines read each record once, in a source or in an output",
        """\
  compactor table refresh s3://my-logs/raw/ s3://my-lake/compacted/ --date-format %Y/%m/%d \\
      --reader-table glue:lake.logs        make late and new objects visible
  compactor table expire s3://my-logs/raw/ s3://my-lake/compacted/ --date-format %Y/%m/%d \\
      --reader-table glue:lake.logs --yes  delete lists that no partition uses
""",
    ),
    "clean-up": Command(
        "compactor_cli.commands.clean_up",
        "delete sources past retention whose outputs are verified",
        """\
  compactor clean-up s3://my-logs/raw/ s3://my-lake/compacted/ --dry-run
  compactor clean-up s3://my-logs/raw/ s3://my-lake/compacted/ --retention-days 30
  compactor clean-up s3://my-logs/raw/ s3://my-lake/compacted/ --yes --json | jq .done
""",
    ),
    "start": Command(
        "compactor_cli.commands.start",
        "start a run of the deployed state machine",
        """\
  compactor start                            with the input of the stack's schedule
  compactor start --duration 30 --wait       the same for 30 days; wait until it ends
  compactor start --input input.json         what the deployed state machine takes
  compactor start s3://my-logs/raw/ s3://my-lake/compacted/ --depth 1 --stack my-stack
""",
    ),
    "status": Command(
        "compactor_cli.commands.status",
        "show the state of a run of the deployed state machine",
        """\
  compactor status                           the last run; exit code 1 when it failed
  compactor status 20261121T060102Z-1a2b3c --failures 100
  compactor status --json | jq .partitions   for scripts
""",
    ),
    "report": Command(
        "compactor_cli.commands.report",
        "fetch and print the report of a run, deployed or not",
        """\
  compactor report                           of the last run that has one
  compactor report 20261121T060102Z-1a2b3c --open
  compactor report s3://my-lake/compacted/ --html report.html
  compactor report --json | jq .totals       report.json itself
""",
    ),
}


def build_parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser; only the command named in ``arguments`` gets its options."""
    parser = Parser(
        prog="compactor",
        description="Rewrites many small S3 objects into a few large ones, without losing or"
        " doubling a record.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    version = f"compactor {__version__}"
    parser.add_argument("-V", "--version", action="version", version=version)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    wanted = _command_of(arguments)
    if wanted is not None and wanted not in COMMANDS:
        parser.error(f"there is no command {wanted!r}{meant(wanted, COMMANDS)}")
    for name, command in COMMANDS.items():
        one = commands.add_parser(
            name,
            help=command.summary,
            description=command.summary[0].upper() + command.summary[1:] + ".",
            epilog=f"examples:\n{command.examples}\n{_EXIT_CODES}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name == wanted:
            module = import_module(command.module)
            module.add_arguments(one)
            one.set_defaults(run=module.run)
    return parser


def _command_of(arguments: Sequence[str]) -> str | None:
    """Return the first word that is no option and not the value of one."""
    before = ""
    for word in arguments:
        if not word.startswith("-") and before != "--log-format":
            return word
        before = word
    return None


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code. SIGTERM interrupts it as Ctrl-C does."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    ended: SystemExit | None = None
    try:
        with own_form(), interrupted_by_sigterm():
            code = _carry_out(arguments)
    except SystemExit as error:
        # argparse exits after --help and on wrong usage.
        ended, code = error, int(error.code or 0)
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        drop_output()
        if not code and not isinstance(error, BrokenPipeError):
            print_failure(f"standard output: {error}")
        return code or EXIT_FAILED
    if ended is not None:
        raise ended
    return code


def _carry_out(arguments: Sequence[str]) -> int:
    try:
        require_streams()
        require_text(arguments)
        args = build_parser(arguments).parse_args(arguments or ["--help"])
        set_form(_form_of(args))
        run: Callable[[argparse.Namespace], int] = args.run
        with region_of_environment():
            return run(args)
    except KeyboardInterrupt:
        print_failure("interrupted; committed work is kept")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        drop_output()
        return EXIT_FAILED
    except Exception as raised:
        code = report_error(raised)
        if code is None:
            raise
        return code


def _form_of(args: argparse.Namespace) -> Form:
    as_json = getattr(args, "log_format", "text") == "json"
    return Form(getattr(args, "quiet", False), getattr(args, "verbose", False), as_json)
