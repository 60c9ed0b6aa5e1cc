"""``compactor replay``: dead letters that are events of S3 go back to their queue."""

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

# SQS hands out and takes ten messages at a time.
_BATCH = 10
# A message that was looked at is not handed out again for so long.
_HIDDEN_SECONDS = 120
_SHOWN = 5


@dataclass(slots=True)
class Replayed:
    """What became of dead letters.

    Attributes:
        replayed: put back; with a dry run, that would be.
        foreign: none of S3's: they stay where they are.
        examples: what some of those are.
    """

    replayed: int = 0
    foreign: int = 0
    examples: list[str] = field(default_factory=list)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Both queues, or the stack that they are of."""
    parser.add_argument("--from", dest="dead", metavar="URL", help="queue of the dead letters")
    parser.add_argument("--to", dest="queue", metavar="URL", help="queue they came from")
    parser.add_argument(
        "-n", "--dry-run", action="store_true", help="only show what they are; takes none"
    )
    add_stack(parser)
    parser.add_argument(
        "--json", action="store_true", help="print one JSON document and nothing else"
    )


def run(args: argparse.Namespace) -> int:
    """Look at each dead letter, put back what is an event of S3, report.

    Raises:
        InvalidInput: the queues are not given, or the stack has none.
    """
    dead, queue = _queues(args)
    with progress("replaying"):
        done = replay(Aws(args.region).client("sqs"), dead, queue, dry_run=args.dry_run)
    if args.json:
        print(json.dumps(asdict(done), indent=2))
        return 0
    would = "would be put back" if args.dry_run else "put back"
    print_line(f"{plural(done.replayed, 'dead letter')} {would}")
    if done.foreign:
        print_line(f"{plural(done.foreign, 'message')} that S3 did not send, left where they are:")
    for example in done.examples:
        print_line(f"  {example}")
    return 0


def replay(sqs: Any, dead: str, queue: str, *, dry_run: bool = False) -> Replayed:
    """Put dead letters back into their queue.

    A letter is deleted after it was sent: a process that dies in between sends it twice, which
        registers
    its objects once.

    Args:
        sqs: client of SQS.
        dead: URL of the dead letters.
        queue: URL of the queue they came from.
        dry_run: only look.
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
        raise InvalidInput(missing, None, "the URL of a queue: both, or neither for a stack's")
    if args.dead:
        return args.dead, args.queue
    outputs = find_deployment(args).stack.outputs
    if "DeadLetterQueueUrl" not in outputs or "EventsQueueUrl" not in outputs:
        accepted = "a stack that was deployed with ingest=events, or --from and --to"
        raise InvalidInput("--stack", args.stack, accepted)
    return outputs["DeadLetterQueueUrl"], outputs["EventsQueueUrl"]
