"""``compactor scan``: describes the objects below a prefix, and how to compact them. Read-only."""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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
from compactor_cli import plan_money
from compactor_cli.commands import options
from compactor_cli.commands.failures import Failure
from compactor_cli.commands.store import open_store
from compactor_cli.console import print_line, print_note, progress
from compactor_cli.idle import nothing_below
from compactor_cli.jobs import ENDPOINT, JOB_FILE, format_lines, require_free, save_job
from compactor_cli.scanned import Scanned, document, show

_SET_ACCEPTED = "a glob and a format with its options, such as '*.csv=csv,header=true'"
_FORMATS = "|".join((*Format, *LINES_OF))
_SET = re.compile(rf"(?P<match>.+)=(?P<format>{_FORMATS})(?P<options>(?:,[a-z]+=(?:,|[^,]+))*)")
_OPTION = re.compile(r",([a-z]+)=(,|[^,]+)")
_SWITCHES = {"true": True, "false": False}
_ESCAPED = {"\\t": "\t", "\\u0001": "\x01"}
_MOST_OBJECTS = 1_000_000
_MAX_OBJECTS = "--max-objects"
# A scan has no destination; this one makes sure that no key counts as an output.
_NOWHERE = "s3://no-destination/none/"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add SOURCE, DEST and what to show."""
    parser.add_argument(
        options.SOURCE, metavar="SOURCE", help="a prefix, such as s3://bucket/logs/"
    )
    parser.add_argument(
        options.DESTINATION,
        metavar="DEST",
        nargs="?",
        help="destination in the printed commands (by default next to SOURCE)",
    )
    parser.add_argument(
        _MAX_OBJECTS,
        metavar="N",
        default=str(_MOST_OBJECTS),
        help=f"list at most this many objects (by default {_MOST_OBJECTS:,})",
    )
    parser.add_argument(
        "--save",
        metavar="NAME",
        help="append source, destination and settings to the job file as [NAME]: then plan, run,"
        " verify and other commands take NAME instead",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="MATCH=FORMAT,…",
        help="declare the format of keys below the source instead of what is proposed, such as"
        " '*.csv=csv,header=true'; may be repeated, and the first match counts",
    )
    parser.add_argument(
        "--print-deployment",
        action="store_true",
        help="print only the keys of a deployment's context, as JSON for cdk.json",
    )
    parser.add_argument(
        "--job-file",
        dest="saved_in",
        type=Path,
        default=Path(JOB_FILE),
        metavar="FILE.toml",
        help="file for --save (by default %(default)s in this directory)",
    )
    plan_money.add_options(parser)
    options.add_common(parser)


def run(args: argparse.Namespace) -> int:
    """List the objects, read a sample, and describe what was found.

    Raises:
        InvalidInput: the input is invalid, or there is nothing below the prefix.
        Failure: there is nothing to save or to deploy.
    """
    most, given = _most(args.max_objects), _given(args.set)
    if args.save:
        require_free(args.saved_in, args.save)
    settings, destination = _settings(args)
    root = settings.source.root
    store = open_store(args.endpoint_url, root.bucket)
    prices, scans = plan_money.prices_of(args, store.region), plan_money.scans_from(args)
    now = time.time()
    listed = _listed(settings, store, now, most)
    if not listed.every.objects:
        raise nothing_below(root, store)
    jobs, read = _jobs(listed, destination, given, store, now)
    if args.print_deployment:
        print(json.dumps(_deployment(jobs), indent=2))
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
            scans_per_month=scans,
            target_class=args.target_class,
        ),
        endpoint_url=args.endpoint_url,
        names=_save(args, jobs, given) if args.save else (),
    )
    if args.json:
        print(json.dumps(document(scanned), indent=2))
    else:
        show(scanned)
        if names := ", ".join(filter(None, scanned.names)):
            print_line(
                f"# saved in {args.saved_in} as {names}, with the formats as proposed: nobody has"
                " confirmed them; change a line there, or scan again with --set"
            )
    if args.save and not any(scanned.names):
        raise Failure(f"{args.saved_in} was not written: no input of a run fits these objects")
    return 0


def _jobs(
    listed: Listed,
    destination: str | None,
    given: Sequence[Declaration],
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
            proposals = propose_formats(read_heads(own, source, store, bar.advance), given)
            declared = [one for proposal in proposals for one in proposal.declared]
            job = propose_job(layout, (*given, *declared), uri, listed, now)
            jobs.append((job, Coverage(listed, layout, proposals)))
    return jobs, len(chosen)


def _given(texts: Sequence[str]) -> tuple[Declaration, ...]:
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
    """Return the keys of a deployment's context.

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


def _most(text: str) -> int:
    accepted = "a whole number of objects from 1 to 1,000,000,000"
    try:
        most = int(text)
    except ValueError:
        raise InvalidInput(_MAX_OBJECTS, text, accepted) from None
    if not 1 <= most <= 1_000_000_000:
        raise InvalidInput(_MAX_OBJECTS, text, accepted)
    return most


def _settings(args: argparse.Namespace) -> tuple[Settings, str | None]:
    """Return the settings of a run over everything scanned, and the given destination."""
    given = options.fields_from(args)
    destination = given.pop(options.DESTINATION, None)
    if destination is not None:
        S3Uri.parse(options.DESTINATION, destination)
    source = given[options.SOURCE]
    # The scan proposes wildcards, so SOURCE must not have any.
    S3Uri.parse(options.SOURCE, source)
    settings = Settings.from_input({**given, options.DESTINATION: _NOWHERE})
    return settings, destination


def _listed(settings: Settings, store: S3Store, now: float, most: int) -> Listed:
    began = time.monotonic()
    with progress("listing", most) as bar:

        def on_objects(done: int) -> None:
            rate = done / max(0.001, time.monotonic() - began)
            bar.show(done, most, f"{done:,} objects, {rate:,.0f}/s")

        return list_below(settings, store, now, most, on_objects)


def _save(
    args: argparse.Namespace,
    jobs: Sequence[tuple[Job, Coverage]],
    given: Sequence[Declaration],
) -> tuple[str, ...]:
    """Save each job in the job file; returns the name of each, empty for one that is not saved.

    Raises:
        InvalidInput: a name is taken.
        OSError: the file cannot be written.
    """
    several = len(jobs) > 1
    names = [f"{args.save}-{n}" if several else args.save for n in range(1, len(jobs) + 1)]
    for name in names:
        require_free(args.saved_in, name)
    endpoint = {ENDPOINT: args.endpoint_url} if args.endpoint_url else {}
    saved = []
    for name, (job, coverage) in zip(names, jobs, strict=True):
        formats = format_lines(coverage.proposals, given)
        useful = not job.fault and bool(coverage.taken or formats)
        if useful:
            save_job(args.saved_in, name, {**job.fields, **endpoint}, formats)
        saved.append(name if useful else "")
    return tuple(saved)
