"""``compactor replay``: sends S3 events from the dead-letter queue back to their queue."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass, field
from typing import Any

from compactor.errors import InvalidInput
from compactor.registry.events import ForeignMessage, decode
from compactor.sizes import plural
from compactor_cli.commands.deployment import add_stack, find_deployment
from compactor_cli.console import print_line, progress
from compactor_cli.deployed.aws import Aws, needing

# SQS receives at most ten messages per request.
_BATCH = 10
# Visibility timeout: a received message stays hidden for this long.
_HIDDEN_SECONDS = 120
_SHOWN = 5


@dataclass(slots=True)
class Replayed:
    """Counts of dead letters.

    Attributes:
        replayed: sent back; in a dry run, that would be.
        foreign: not sent by S3; they stay in the dead-letter queue.
        examples: descriptions of some foreign ones.
    """

    replayed: int = 0
    foreign: int = 0
    examples: list[str] = field(default_factory=list)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add both queues, or the stack that owns them."""
    parser.add_argument("--from", dest="dead", metavar="URL", help="URL of the dead-letter queue")
    parser.add_argument("--to", dest="queue", metavar="URL", help="URL of the queue they came from")
    parser.add_argument(
        "-n", "--dry-run", action="store_true", help="only show the dead letters; move none"
    )
    add_stack(parser)
    parser.add_argument(
        "--json", action="store_true", help="print one JSON document and nothing else"
    )


def run(args: argparse.Namespace) -> int:
    """Receive each dead letter, send S3 events back, and print the counts.

    Raises:
        InvalidInput: the queues are not given, or the stack has none.
    """
    dead, queue = _queues(args)
    with progress("replaying"):
        done = replay(Aws(args.region).client("sqs"), dead, queue, dry_run=args.dry_run)
    if args.json:
        print(json.dumps(asdict(done), indent=2))
        return 0
    would = "would be sent back" if args.dry_run else "sent back"
    print_line(f"{plural(done.replayed, 'dead letter')} {would}")
    if done.foreign:
        print_line(f"{plural(done.foreign, 'message')} not from S3, left in the dead-letter queue:")
    for example in done.examples:
        print_line(f"  {example}")
    return 0


def replay(sqs: Any, dead: str, queue: str, *, dry_run: bool = False) -> Replayed:
    """Send dead letters back to their queue.

    A message is deleted after it was sent: a crash in between sends it twice, which registers its
    objects once.

    Args:
        sqs: client of SQS.
        dead: URL of the dead letters.
        queue: URL of the queue they came from.
        dry_run: only count.
    """
    done = Replayed()
    seen: set[str] = set()
    while True:
        with needing("sqs:ReceiveMessage"):
            answer = sqs.receive_message(
                QueueUrl=dead,
                MaxNumberOfMessages=_BATCH,
                VisibilityTimeout=_HIDDEN_SECONDS,
            )
        messages = [m for m in answer.get("Messages", ()) if m["MessageId"] not in seen]
        if not messages:
            return done
        for message in messages:
            seen.add(message["MessageId"])
            _replay_one(sqs, dead, queue if not dry_run else "", message, done)


def _replay_one(sqs: Any, dead: str, queue: str, message: Any, done: Replayed) -> None:
    try:
        decode(message["Body"])
    except ForeignMessage as error:
        done.foreign += 1
        if len(done.examples) < _SHOWN:
            done.examples.append(str(error))
        return
    done.replayed += 1
    if queue:
        with needing("sqs:SendMessage"):
            sqs.send_message(QueueUrl=queue, MessageBody=message["Body"])
        with needing("sqs:DeleteMessage"):
            sqs.delete_message(QueueUrl=dead, ReceiptHandle=message["ReceiptHandle"])


def _queues(args: argparse.Namespace) -> tuple[str, str]:
    if bool(args.dead) != bool(args.queue):
        missing = "--to" if args.dead else "--from"
        raise InvalidInput(
            missing, None, "the URL of a queue: give both, or neither to use those of a stack"
        )
    if args.dead:
        return args.dead, args.queue
    outputs = find_deployment(args).stack.outputs
    if "DeadLetterQueueUrl" not in outputs or "EventsQueueUrl" not in outputs:
        accepted = "a stack that was deployed with ingest=events, or --from and --to"
        raise InvalidInput("--stack", args.stack, accepted)
    return outputs["DeadLetterQueueUrl"], outputs["EventsQueueUrl"]
