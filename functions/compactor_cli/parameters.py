"""Parameters that several commands share: places, jobs, and the settings of a run as options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from compactor.settings.arguments import DESTINATION, SOURCE, STATE, value_of
from compactor.settings.fields import FIELDS
from compactor_cli.command_line import PARTITIONING, Args, Argument, Option
from compactor_cli.jobs import JOB_FILE, is_name, no_job, read_job

#: Environment variable with the name of a stack, and the default name.
STACK_VARIABLE, DEFAULT_STACK = "COMPACTOR_STACK", "s3-compactor"
# The settings that --help shows; --help-all shows every one.
_COMMON = frozenset(
    {
        *PARTITIONING,
        "include",
        "exclude",
        "formats",
        "settle_seconds",
        "target_bytes",
        "output_format",
        "delete_after",
    }
)


def places(*names: str, required: bool = False) -> list[click.Parameter]:
    """Return the arguments SOURCE, DEST or both; the name of a job may stand for them."""
    return [
        Argument(
            name,
            "SOURCE" if name == SOURCE else "DEST",
            FIELDS[name].meaning,
            required=required,
            callback=_job if name == names[0] else None,
        )
        for name in names
    ]


def _job(ctx: click.Context, parameter: click.Parameter, word: str | None) -> str | None:
    """Replace the name of a job by its URI; its settings become defaults of what was not typed.

    Raises:
        InvalidInput: there is no such job, or it is invalid.
    """
    if word is None or not is_name(word) or ctx.resilient_parsing:
        return word
    named, field = ctx.obj, parameter.name or ""
    file = Path(named or JOB_FILE)
    job = read_job(file, word) if file.exists() or named else None
    if job is None:
        raise no_job(file, word, field)
    ctx.default_map = job
    return str(job[field])


def fields(*names: str) -> list[click.Parameter]:
    """Return the options for these settings of a run; without names, for all but the places."""
    chosen = names or [name for name in FIELDS if name not in (SOURCE, DESTINATION)]
    return [_field(name, common=bool(names) or name in _COMMON) for name in chosen]


def _field(name: str, *, common: bool) -> click.Parameter:
    spec = FIELDS[name]
    option = "--state-uri" if name == STATE else f"--{name.replace('_', '-')}"
    text = f"{spec.meaning} Accepted: {spec.accepted}."
    if spec.default is not None and not isinstance(spec.default, tuple):
        text += f" Default: {spec.default_text}."
    shared: dict[str, Any] = {"section": spec.section.lower(), "common": common, "help": text}
    if isinstance(spec.default, bool):
        return Option(f"{option}/--no-{option[2:]}", name, default=None, **shared)
    is_list = isinstance(spec.default, tuple) and name != "formats"
    if is_list:
        metavar = "GLOB" if "globs" in spec.accepted else "NAME"
    elif name.endswith("_uri"):
        metavar = "URI"
    else:
        metavar = "N" if spec.accepted.startswith(("a whole number", "a number")) else "VALUE"
    return Option(option, name, type=click.UNPROCESSED, multiple=is_list, metavar=metavar, **shared)


def fields_from(args: Args) -> dict[str, Any]:
    """Return the given settings in the form of the JSON input.

    Raises:
        InvalidInput: a value is rejected.
    """
    given: dict[str, Any] = {}
    for name, spec in FIELDS.items():
        value = getattr(args, name, None)
        if isinstance(value, tuple):
            value = [*value] or None
        if value is not None:
            given[name] = value_of(spec, value) if isinstance(value, str) else value
    return given


ENDPOINT = Option("--endpoint-url", metavar="URL", help="S3-compatible endpoint (by default AWS)")
JSON = Option("--json", is_flag=True, help="print one JSON document and nothing else")
COMMON: list[click.Parameter] = [ENDPOINT, JSON]
YES = Option("-y", "--yes", is_flag=True, help="go on without confirmation; required in scripts")
REGION = Option(
    "--region",
    section="deployed stack",
    common=False,
    help="its region (by default as boto3 finds it)",
)
NAME = Option("--name", metavar="RUN", common=False, help="the run id (by default the time)")
LOG = Option(
    "--log",
    type=click.Path(path_type=Path),
    metavar="FILE",
    common=False,
    help="append what workers and Spark log to this file",
)
STACK: list[click.Parameter] = [
    Option(
        "--stack",
        metavar="NAME",
        section="deployed stack",
        help=f"its CloudFormation stack (by default {STACK_VARIABLE}, else {DEFAULT_STACK})",
    ),
    REGION,
]
INPUT = Option(
    "--input",
    metavar="FILE.json",
    help="the whole input, as the deployed state machine takes it, instead of other options; -"
    " reads standard input",
)
