"""Limits on how much a worker holds, sends and reads concurrently."""

from __future__ import annotations

from dataclasses import dataclass

from compactor.sizes import MIB


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """Sizes and counts that users cannot set, passed along with the settings of a run.

    For S3's own limits see its user guide, "Amazon S3 multipart upload limits".

    Attributes:
        whole_bytes: plain content up to this size is held in memory; larger content is streamed.
        block_bytes: plain content per call of the encoder.
        part_bytes: size of an uploaded part. With S3's 10,000 parts, 16 MiB reach 156 GiB, far
            above any target.
        most_parts: S3's limit on the parts of one upload.
        copy_part_bytes: size of a part that S3 copies. S3 allows 5 GiB, but copies a part at the
            speed of one connection; smaller parts are copied concurrently.
        kept_bytes: the most that one manifest may keep about its sources, besides their rows. It
            is held as Python objects, and as JSON while the commit is written.
        group_sources: the most sources of one group, which keeps the manifest of a commit below
            about 7 MB of JSON.
        window_objects: the most objects in one listing. A source takes about 1 KB, its row in the
            manifest included: 50 MB for a partition of any size.
        small_object_bytes: S3 copies sources of at least this size, each alone; None for half of
            the target size.
        max_expansion: a source that decompresses to more than this many times its size, and to
            more than 16 MiB, is quarantined. gzip expands at most 1,032 times.
        max_document_bytes: the largest plain content in formats that must be held in memory. It
            does not depend on the machine: a group rebuilt elsewhere must leave out the same
            sources.
        lambda_max_objects: with engine auto, a worker takes at most so many sources of one
            partition in a run, and leaves the rest to Spark.
        reads: sources read concurrently; fewer when S3 asks to slow down. S3 serves 5,500 GETs a
            second below one prefix; 128, 256 and 512 reads gave 3,360, 4,880 and 6,000. Each read
            takes a connection and, above 256 KiB, a thread, of which a Lambda function has 1,024.
            They use at most half of the files that the process may have open.
        read_ahead_bytes: the most bytes of sources being fetched or waiting.
        work_seconds: how long an invocation starts new work; the rest is left to the next one. The
            remaining time in Lambda (900 s in all) is for what has begun: a slow last group, a
            large copy, retries.
        reader_grace_seconds: how long clean-up waits after the readers' table stops showing a
            source, for queries planned before. Athena ends a query after 30 minutes unless a quota
            says otherwise; ``delete_after`` is for longer ones.
        races: how often other writers may be first to write the next entry of a log. Each time
            another worker made progress, so this many losses in a row are a defect.
    """

    whole_bytes: int = 16 * MIB
    block_bytes: int = MIB
    part_bytes: int = 16 * MIB
    most_parts: int = 10_000
    copy_part_bytes: int = 512 * MIB
    kept_bytes: int = 32 * MIB
    group_sources: int = 50_000
    window_objects: int = 50_000
    small_object_bytes: int | None = None
    max_expansion: int = 250
    max_document_bytes: int = 128 * MIB
    lambda_max_objects: int = 1_000_000
    reads: int = 256
    read_ahead_bytes: int = 64 * MIB
    work_seconds: float = 570.0
    reader_grace_seconds: int = 3_600
    races: int = 1_000

    @property
    def most_uploaded_bytes(self) -> int:
        """The most bytes that a worker can send in one upload."""
        return self.most_parts * self.part_bytes


#: Default memory of the compaction function, in MB.
WORKER_MB = 3_008

#: The limits of every worker. Tests use smaller ones.
USUAL = WorkerLimits()
