"""One data set on a server of its own: the embedded S3, and nginx before it."""

from __future__ import annotations

import contextlib
import io
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import obstore
from botocore.config import Config
from obstore.store import S3Store

from compactor.errors import TransientStoreError
from compactor_cli.local.embedded import EmbeddedS3, SeedObject, embedded_s3
from compactor_dev.benchmark.datasets import DataSet, Kind, objects
from compactor_dev.benchmark.digests import NO_RECORDS, Records, of_output
from compactor_dev.benchmark.front import Front, Lane, front
from compactor_dev.benchmark.tools import Tools

SOURCE_BUCKET, BUCKET = "bench-source", "bench-output"
# Sources that have settled, in a partition that receives no more.
_AGE_SECONDS = 30 * 86_400
_WARMING_THREADS = 16
_DELETED_AT_ONCE = 1_000
_PART_BYTES, _PARTS = 16 << 20, 4


@dataclass(slots=True)
class Sources:
    """The objects below one prefix: all of a set, or the first so many.

    Attributes:
        bytes: as stored.
        records: what an output made of them must hold.
    """

    prefix: str
    objects: int = 0
    bytes: int = 0
    records: Records = NO_RECORDS


@dataclass(frozen=True, slots=True)
class Outputs:
    """What a client left below its prefix."""

    objects: int
    bytes: int
    records: Records


class BenchServer:
    """A data set, and lanes to it.

    Attributes:
        data_set: what it holds.
        lanes: URL of each lane.
    """

    def __init__(self, data_set: DataSet, embedded: EmbeddedS3, running: Front) -> None:
        self.data_set = data_set
        self.lanes = running.endpoints
        self._trust = running.trust
        self._embedded = embedded
        self._sources: dict[int | None, Sources] = {}
        self._client: Any = boto3.client(
            "s3",
            endpoint_url=embedded.endpoint_url,
            aws_access_key_id="embedded",
            aws_secret_access_key="embedded",  # noqa: S106 - the embedded S3 takes any
            region_name="us-east-1",
            config=Config(request_checksum_calculation="when_required"),
        )

    def environment(self, lane: Lane) -> Mapping[str, str]:
        """Variables that lead boto3 and obstore into a lane; an empty one is to be removed."""
        trust = self._trust if lane.tls else {}
        return {**self._embedded.environment, "AWS_ENDPOINT_URL_S3": self.lanes[lane], **trust}

    def sources(self, sample: int | None) -> Sources:
        """The first so many objects, or all; stored before :meth:`fill` returned."""
        whole = sample is None or sample >= self.data_set.objects
        return self._sources[None if whole else sample]

    def fill(self, samples: Sequence[int | None], now: float) -> None:
        """Store the set, and copies of its first objects below prefixes of their own.

        Args:
            samples: how many objects clients want; None for all.
            now: UNIX seconds.
        """
        name = self.data_set.name
        self._sources = {None: Sources(f"{name}/all/")}
        for sample in samples:
            if sample is not None and sample < self.data_set.objects:
                self._sources[sample] = Sources(f"{name}/first-{sample}/")
        self._embedded.seed(SOURCE_BUCKET, self._objects(now - _AGE_SECONDS))
        self._embedded.create_bucket(BUCKET)

    def _objects(self, last_modified: float) -> Iterator[SeedObject]:
        for index, one in enumerate(objects(self.data_set)):
            for sample, sources in self._sources.items():
                if sample is None or index < sample:
                    sources.objects += 1
                    sources.bytes += len(one.body)
                    sources.records += one.records
                    yield SeedObject(sources.prefix + one.name, one.body, last_modified)

    def warm(self, lane: Lane) -> int:
        """Read every source once, so that all clients find the same cache; returns how many."""
        store = S3Store(
            SOURCE_BUCKET,
            endpoint=self.lanes[lane],
            access_key_id="embedded",
            secret_access_key="embedded",  # noqa: S106 - the embedded S3 takes any
            region="us-east-1",
            virtual_hosted_style_request=False,
            client_options={"allow_http": True},
        )

        def read(key: str) -> int:
            return len(obstore.get(store, key).bytes())

        with ThreadPoolExecutor(_WARMING_THREADS) as pool:
            return sum(1 for _ in pool.map(read, self.keys()))

    def keys(self) -> list[str]:
        """The keys of all sources, samples included."""
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=SOURCE_BUCKET)
        return [entry["Key"] for page in pages for entry in page.get("Contents", ())]

    def outputs(self, prefix: str, scratch: Path) -> Outputs:
        """Read back and digest everything below a prefix of the output bucket."""
        count = size = 0
        records = NO_RECORDS
        for key in self._below(prefix):
            with tempfile.NamedTemporaryFile(dir=scratch) as copy:
                body = self._client.get_object(Bucket=BUCKET, Key=key)["Body"]
                shutil.copyfileobj(body, copy, io.DEFAULT_BUFFER_SIZE * 64)
                copy.flush()
                size += copy.tell()
                kind = self.data_set.kind
                trails = kind is Kind.CLOUDTRAIL
                records += of_output(Path(copy.name), trails=trails, header=kind.header)
            count += 1
        return Outputs(count, size, records)

    def upload_bytes_per_second(self) -> float:
        """How fast the server takes a multipart upload, its completion included."""
        body = b"x" * _PART_BYTES
        where = {"Bucket": BUCKET, "Key": "ceiling"}
        started = time.monotonic()
        upload = self._client.create_multipart_upload(
            **where, ChecksumAlgorithm="CRC32", ChecksumType="FULL_OBJECT"
        )["UploadId"]
        parts = []
        for number in range(1, _PARTS + 1):
            answer = self._client.upload_part(
                **where, UploadId=upload, PartNumber=number, Body=body
            )
            parts.append({"PartNumber": number, "ETag": answer["ETag"]})
        self._client.complete_multipart_upload(
            **where, UploadId=upload, MultipartUpload={"Parts": parts}
        )
        seconds = time.monotonic() - started
        self.clear()
        return _PARTS * _PART_BYTES / seconds

    def clear(self) -> None:
        """Delete all outputs and all state."""
        keys = self._below("")
        for start in range(0, len(keys), _DELETED_AT_ONCE):
            doomed = [{"Key": key} for key in keys[start : start + _DELETED_AT_ONCE]]
            answer = self._client.delete_objects(Bucket=BUCKET, Delete={"Objects": doomed})
            if answer.get("Errors"):
                raise TransientStoreError(f"outputs could not be deleted: {answer['Errors'][:1]}")

    def _below(self, prefix: str) -> list[str]:
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return [entry["Key"] for page in pages for entry in page.get("Contents", ())]


@contextlib.contextmanager
def bench_server(
    data_set: DataSet, tools: Tools, directory: Path, lanes: Sequence[Lane]
) -> Iterator[BenchServer]:
    """Run both servers for the length of the block; nothing is stored yet.

    Raises:
        EngineError: the embedded S3 did not start.
        TransientStoreError: nginx did not start.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "embedded.log").open("wb") as log, embedded_s3(log) as embedded:
        upstream = embedded.endpoint_url.removeprefix("http://")
        with front(tools, directory / "nginx", upstream, lanes, (SOURCE_BUCKET,)) as running:
            yield BenchServer(data_set, embedded, running)
