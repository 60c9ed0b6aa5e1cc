"""``compactor scan``: describes the objects below a prefix, and how to compact them. Read-only."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from compactor.errors import InvalidInput
from compactor.formats.declaration import LINES_OF, Declaration, parse_formats
from compactor.model import Format
from compactor.money import RunWork, Verdict
from compactor.s3.store import S3Store
from compactor.scanning.coverage import Coverage, holdings_of
from compactor.scanning.jobs import Job, destinations, propose_job
from compactor.scanning.layouts import choose
from compactor.scanning.listing import Listed, list_below, split_key
from compactor.scanning.proposals import propose_formats, read_heads, sample
from compactor.settings.settings import Settings
from compactor.settings.uris import S3Uri
from compactor_cli import parameters as given
from compactor_cli import plan_money
from compactor_cli.command_line import Args, Argument, Option, action
from compactor_cli.console import print_line, print_note, progress
from compactor_cli.failures import Failure
from compactor_cli.idle import nothing_below
from compactor_cli.jobs import ENDPOINT, JOB_FILE, format_lines, require_free, save_job
from compactor_cli.scanned import Scanned, document, show
from compactor_cli.store import open_store

_SET_ACCEPTED = "a glob and a format with its options, such as '*.csv=csv,header=true'"
_FORMATS = "|".join((*Format, *LINES_OF))
_SET = re.compile(rf"(?P<match>.+)=(?P<format>{_FORMATS})(?P<options>(?:,[a-z]+=(?:,|[^,]+))*)")
_OPTION = re.compile(r",([a-z]+)=(,|[^,]+)")
_SWITCHES = {"true": True, "false": False}
_ESCAPED = {"\\t": "\t", "\\u0001": "\x01"}
_MOST_OBJECTS = 1_000_000
# A scan has no destination; this one makes sure that no key counts as an output.
_NOWHERE = "s3://no-destination/none/"


@action(
    Argument("s3_source_uri", "SOURCE", "a prefix, such as s3://bucket/logs/"),
    Argument(
        "s3_destination_uri",
        "[DEST]",
        "destination in the printed commands (by default next to SOURCE)",
        required=False,
    ),
    Option(
        "--max-objects",
        type=click.IntRange(1, 1_000_000_000),
        metavar="N",
        default=_MOST_OBJECTS,
        help=f"list at most this many objects (by default {_MOST_OBJECTS:,})",
    ),
    Option(
        "--save",
        metavar="NAME",
        help="append source, destination and settings to the job file as [NAME]: then plan, run,"
        " verify and other commands take NAME instead",
    ),
    Option(
        "--set",
        multiple=True,
        metavar="MATCH=FORMAT,…",
        help="declare the format of keys below the source instead of what is proposed, such as"
        " '*.csv=csv,header=true'; may be repeated, and the first match counts",
    ),
    Option(
        "--print-deployment",
        is_flag=True,
        help="print only the part [job] of deployment.toml",
    ),
    plan_money.OPTIONS,
    given.COMMON,
)
def run(args: Args) -> int:
    """List the objects, read a sample, and describe what was found.

    Raises:
        InvalidInput: the input is invalid, or there is nothing below the prefix.
        Failure: there is nothing to save or to deploy.
    """
    declared, file = _declared(args.set), Path(args.job_file or JOB_FILE)
    if args.save:
        require_free(file, args.save)
    settings, destination = _settings(args)
    root = settings.source.root
    store = open_store(args.endpoint_url, root.bucket)
    prices = plan_money.prices_of(args, store.region)
    now = time.time()
    listed = _listed(settings, store, now, args.max_objects)
    if not listed.every.objects:
        raise nothing_below(root, store)
    jobs, read = _jobs(listed, destination, declared, store, now)
    if args.print_deployment:
        print("\n".join(("[job]", *_toml_lines(_deployment(jobs)))))
        return 0
    coverages = [coverage for _, coverage in jobs]
    sources, outputs = holdings_of(coverages)
    scanned = Scanned(
        uri=root.uri,
        at=now,
        listed=listed,
        read=read,
        jobs=jobs,
        money=Verdict(
            sources=sources,
            outputs=outputs,
            work=sum((coverage.work(settings) for coverage in coverages), RunWork()),
            prices=prices,
            scans_per_month=args.scans_per_month,
            target_class=args.target_class,
        ),
        endpoint_url=args.endpoint_url,
        names=_save(args, file, jobs, declared) if args.save else (),
    )
    if args.json:
        print(json.dumps(document(scanned), indent=2))
    else:
        show(scanned)
        if names := ", ".join(filter(None, scanned.names)):
            print_line(
                f"# saved in {file} as {names}, with the formats as proposed: nobody has"
                " confirmed them; change a line there, or scan again with --set"
            )
    if args.save and not any(scanned.names):
        raise Failure(f"{file} was not written: no input of a run fits these objects")
    return 0


def _jobs(
    listed: Listed,
    destination: str | None,
    declarations: Sequence[Declaration],
    store: S3Store,
    now: float,
) -> tuple[list[tuple[Job, Coverage]], int]:
    """Return a job for each layout with what it takes, and how many objects were read for it."""
    root, directories = listed.root, Counter[str]()
    for place, counts in listed.places.items():
        directories[place.directory] += counts.objects
    layouts = choose(directories, root.prefix)
    if not layouts:
        return [], 0
    fitting = {path for layout in layouts for path in layout.partition_of}
    chosen = sample(listed, fitting)
    jobs = []
    with progress("reading a sample", len(chosen)) as bar:
        places = destinations(layouts, root, destination)
        for layout, uri in zip(layouts, places, strict=True):
            own = [one for one in chosen if split_key(one.key)[0] in layout.partition_of]
            source = root.prefix + "".join(f"{level}/" for level in layout.root)
            proposals = propose_formats(read_heads(own, source, store, bar.advance), declarations)
            declared = [one for proposal in proposals for one in proposal.declared]
            job = propose_job(layout, (*declarations, *declared), uri, listed, now)
            jobs.append((job, Coverage(listed, layout, proposals)))
    return jobs, len(chosen)


def _declared(texts: Sequence[str]) -> tuple[Declaration, ...]:
    """Return the declarations of ``--set``.

    Raises:
        InvalidInput: one is rejected.
    """
    declarations: list[dict[str, Any]] = []
    for text in texts:
        parts = _SET.fullmatch(text)
        if parts is None:
            raise InvalidInput("--set", text, _SET_ACCEPTED)
        values = {
            name: _SWITCHES.get(value, value) for name, value in _OPTION.findall(parts["options"])
        }
        delimiter = str(values.get("delimiter", ""))
        if delimiter in _ESCAPED:
            values["delimiter"] = _ESCAPED[delimiter]
        declarations.append({"match": parts["match"], "format": parts["format"], **values})
    try:
        return parse_formats(declarations)
    except ValueError as error:
        raise InvalidInput("--set", " ".join(texts), str(error)) from None


def _deployment(jobs: Sequence[tuple[Job, Coverage]]) -> dict[str, Any]:
    """Return the fields of a deployment's runs.

    Raises:
        Failure: there is no input, or several, which are deployments of their own.
    """
    if len(jobs) != 1 or jobs[0][0].fault:
        sources = ", ".join(job.fields["s3_source_uri"] for job, _ in jobs if not job.fault)
        advice = f"scan one of its sources: {sources}" if sources else "no input of a run fits"
        raise Failure(f"a deployment has one source; {advice}")
    ((job, coverage),) = jobs
    for proposal in coverage.proposals:
        if proposal.options and not proposal.declared:
            print_note(f"{proposal.match} is left alone: {proposal.evidence}; --set declares it")
    return dict(job.fields)


def _toml_lines(fields: Mapping[str, Any]) -> Iterator[str]:
    return (f"{name} = {_toml(value)}" for name, value in fields.items())


def _toml(value: Any) -> str:
    """Return a value of JSON as TOML, which has other objects and the same of all else."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(value[key])}" for key in value) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _settings(args: Args) -> tuple[Settings, str | None]:
    """Return the settings of a run over everything scanned, and the given destination."""
    fields = given.fields_from(args)
    destination = fields.pop("s3_destination_uri", None)
    if destination is not None:
        S3Uri.parse("s3_destination_uri", destination)
    # The scan proposes wildcards, so SOURCE must not have any.
    S3Uri.parse("s3_source_uri", fields["s3_source_uri"])
    settings = Settings.from_input({**fields, "s3_destination_uri": _NOWHERE})
    return settings, destination


def _listed(settings: Settings, store: S3Store, now: float, most: int) -> Listed:
    began = time.monotonic()
    with progress("listing", most) as bar:

        def on_objects(done: int) -> None:
            rate = done / max(0.001, time.monotonic() - began)
            bar.show(done, most, f"{done:,} objects, {rate:,.0f}/s")

        return list_below(settings, store, now, most, on_objects)


def _save(
    args: Args,
    file: Path,
    jobs: Sequence[tuple[Job, Coverage]],
    declarations: Sequence[Declaration],
) -> tuple[str, ...]:
    """Save each job in the job file; returns the name of each, empty for one that is not saved.

    Raises:
        InvalidInput: a name is taken.
        OSError: the file cannot be written.
    """
    several = len(jobs) > 1
    names = [f"{args.save}-{n}" if several else args.save for n in range(1, len(jobs) + 1)]
    for name in names:
        require_free(file, name)
    endpoint = {ENDPOINT: args.endpoint_url} if args.endpoint_url else {}
    saved = []
    for name, (job, coverage) in zip(names, jobs, strict=True):
        formats = format_lines(coverage.proposals, declarations)
        useful = not job.fault and bool(coverage.taken or formats)
        if useful:
            save_job(file, name, {**job.fields, **endpoint}, formats)
        saved.append(name if useful else "")
    return tuple(saved)
