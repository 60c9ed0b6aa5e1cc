"""``compactor scan``: describes the objects below a prefix, and how to compact them. Read-only."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

from compactor.errors import InvalidInput
from compactor.money import Verdict
from compactor.s3.store import S3Store
from compactor.scanning.choosing import Choice, choose
from compactor.scanning.proposals import Proposal, propose
from compactor.scanning.sample import Looked, look, required_by, taken_shares
from compactor.scanning.savings import holdings_of, work_of
from compactor.scanning.scan import Seen, scan
from compactor.settings.settings import Settings
from compactor.settings.uris import S3Uri
from compactor_cli import plan_money
from compactor_cli.commands import options
from compactor_cli.commands.failures import Failure
from compactor_cli.commands.store import open_store
from compactor_cli.console import print_line, progress
from compactor_cli.idle import nothing_below
from compactor_cli.jobs import ENDPOINT, JOB_FILE, require_free, save_job
from compactor_cli.scanned import Scanned, document, show

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
        help=f"list at most this many objects, and extrapolate (by default {_MOST_OBJECTS:,})",
    )
    parser.add_argument(
        "--save",
        metavar="NAME",
        help="append source, destination and settings to the job file as [NAME]: then plan, run,"
        " verify and other commands take NAME instead",
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
        Failure: there is nothing to save.
    """
    most = _most(args.max_objects)
    if args.save:
        require_free(args.saved_in, args.save)
    settings, destination = _settings(args)
    store = open_store(args.endpoint_url, settings.source.root.bucket)
    prices, scans = plan_money.prices_of(args, store.region), plan_money.scans_from(args)
    now = time.time()
    seen = _scanned(settings, store, now, most)
    if not seen.objects:
        raise nothing_below(settings.source.root, store)
    looked = _looked(settings, store, seen)
    decided, taken = _required(settings, store, looked)
    choice = _choice(seen, settings.source.root)
    sources, outputs = holdings_of(seen, choice, taken_shares(taken, seen.chances.kind))
    proposals = []
    if sources:
        proposals = propose(
            choice,
            settings.source.root,
            now,
            destination=destination,
            decided=decided,
            arrivals=seen.arrivals,
        )
    found = Scanned(
        uri=settings.source.root.uri,
        at=now,
        seen=seen,
        looked=looked,
        choice=choice,
        proposals=proposals,
        money=Verdict(
            sources=sources,
            outputs=outputs,
            work=work_of(seen, choice, settings),
            prices=prices,
            scans_per_month=scans,
            target_class=args.target_class,
        ),
        endpoint_url=args.endpoint_url,
        jobs=_save(args, proposals) if args.save else (),
    )
    if args.json:
        print(json.dumps(document(found), indent=2))
    else:
        show(found)
        if any(found.jobs):
            print_line(f"# saved in {args.saved_in} as {', '.join(filter(None, found.jobs))}")
    if args.save and not any(found.jobs):
        raise Failure(f"{args.saved_in} was not written: no input of a run fits these objects")
    return 0


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


def _scanned(settings: Settings, store: S3Store, now: float, most: int) -> Seen:
    began = time.monotonic()
    with progress("listing", most) as bar:

        def on_objects(done: int) -> None:
            rate = done / max(0.001, time.monotonic() - began)
            bar.show(done, most, f"{done:,} objects, {rate:,.0f}/s")

        return scan(settings, store, now, most=most, on_objects=on_objects)


def _looked(settings: Settings, store: S3Store, seen: Seen) -> list[Looked]:
    chosen = seen.chances.chosen()
    with progress("reading a sample", len(chosen)) as bar:
        return look(chosen, store, settings, bar.advance)


def _required(
    settings: Settings, store: S3Store, looked: list[Looked]
) -> tuple[dict[str, str], list[Looked]]:
    """Return the fields that take what a run would leave alone, and the sample as read with them.

    Those that were refused are read again.
    """
    fields = required_by(looked)
    refused = [one.source for one in looked if one.refused]
    if not (fields and refused):
        return fields, looked
    tried = Settings.from_input({**settings.to_dict(), **fields})
    again = [*(one for one in looked if not one.refused), *look(refused, store, tried)]
    return required_by(again) | fields, again


def _choice(seen: Seen, root: S3Uri) -> Choice:
    if not seen.keys.total:
        why = "a run would compact none of these objects"
        return Choice((), clear=False, why=why, total=0)
    return choose(seen.keys, whole_bucket=not root.prefix)


def _save(args: argparse.Namespace, proposals: Sequence[Proposal]) -> tuple[str, ...]:
    """Save each proposal in the job file; returns the job's name of each, empty for a faulty one.

    Raises:
        InvalidInput: a name is taken.
        OSError: the file cannot be written.
    """
    several = len(proposals) > 1
    names = [f"{args.save}-{n}" if several else args.save for n in range(1, len(proposals) + 1)]
    for name in names:
        require_free(args.saved_in, name)
    endpoint = {ENDPOINT: args.endpoint_url} if args.endpoint_url else {}
    for name, one in zip(names, proposals, strict=True):
        if not one.fault:
            save_job(args.saved_in, name, {**one.fields, **endpoint})
    return tuple("" if one.fault else name for name, one in zip(names, proposals, strict=True))
