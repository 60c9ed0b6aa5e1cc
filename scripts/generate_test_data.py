"""Writes generated objects to a bucket, to try the compactor on.

    python scripts/generate_test_data.py -r 20 -f 500 -b my-bucket --prefix raw/

AWS_ENDPOINT_URL_S3 names another S3 than that of AWS.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import Any

import boto3
import botocore.config
import botocore.exceptions
import smart_open

from compactor_local.generate import KINDS, GeneratedObject, generate

_THREADS = 16
# Objects in memory at once.
_BATCH = 1_000


def main() -> int:
    """Generate and write what the command line asks for; returns the exit code."""
    args = _parsed()
    start = args.start or datetime.now(UTC).date() - timedelta(days=args.days)
    objects = generate(
        args.files,
        args.records,
        kinds=args.kinds,
        start=start,
        days=args.days,
        size_bytes=args.size,
        seed=args.seed,
    )
    root = f"s3://{args.bucket}/{args.prefix}"
    config = botocore.config.Config(max_pool_connections=_THREADS)
    parameters = {"client": boto3.client("s3", config=config), "multipart_upload": False}

    def store(generated: GeneratedObject) -> tuple[int, int]:
        _write(root + generated.key, generated.content, parameters)
        return generated.records, len(generated.content)

    records = size_bytes = 0
    try:
        with ThreadPoolExecutor(_THREADS) as pool:
            while batch := list(islice(objects, _BATCH)):
                for object_records, object_bytes in pool.map(store, batch):
                    records += object_records
                    size_bytes += object_bytes
    except (botocore.exceptions.BotoCoreError, ValueError) as error:
        print(f"generate_test_data.py: {error}", file=sys.stderr)
        return 1
    print(f"{args.files:,} objects, {records:,} records, {size_bytes:,} bytes below {root}")
    return 0


def _write(uri: str, content: bytes, parameters: dict[str, Any]) -> None:
    # smart-open would compress by the suffix of the key.
    with smart_open.open(uri, "wb", compression="disable", transport_params=parameters) as stream:
        stream.write(content)


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Write generated objects to a bucket.")
    add = parser.add_argument
    add("-b", "--bucket", required=True, help="the bucket, which must exist")
    add("--prefix", default="", help="beginning of all keys, such as raw/")
    add("-f", "--files", type=_positive, default=500, help="number of objects (%(default)s)")
    add("-r", "--records", type=_positive, default=20, help="mean records per object (%(default)s)")
    add("--size", type=_positive, default=0, metavar="BYTES", help="mean plain size, instead of -r")
    add("--kinds", type=_kinds, default=KINDS, help=f"of {','.join(KINDS)} (all)")
    add("--days", type=_positive, default=7, help="days of the keys (%(default)s)")
    add("--start", type=date.fromisoformat, metavar="DATE", help="first day (--days before today)")
    add("--seed", type=int, default=0, help="other values, other objects (%(default)s)")
    return parser.parse_args()


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: not a number from 1 on")
    return number


def _kinds(text: str) -> Sequence[str]:
    kinds = text.split(",")
    unknown = set(kinds) - set(KINDS)
    if unknown:
        raise argparse.ArgumentTypeError(f"{text}: expected {', '.join(KINDS)}, comma separated")
    return kinds


if __name__ == "__main__":
    sys.exit(main())
