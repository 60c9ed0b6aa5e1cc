"""How much a worker holds, sends and reads concurrently."""

from __future__ import annotations

from dataclasses import dataclass

from compactor.sizes import MIB

#: Until then files of a run and replaced checkpoints stay: a quarter, as reports are asked for.
KEEP_RUNS_DAYS = 90
# Deflate expands a byte to at most so many (zlib's technical notes: 1032:1).
_DEFLATE_EXPANSION = 1032


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """Sizes and counts that no user sets, and that travel with the settings of a run.

    S3's own limits are those of its user guide, "Amazon S3 multipart upload limits".

    Attributes:
        whole_bytes: plain content up to this size is held whole; beyond it, it is streamed.
        block_bytes: so much plain content is given to the encoder in one call.
        segment_bytes: gzip outputs are encoded in segments, side by side. One has at least so much
            plain content and ends where a source does, at twice of it at the latest.
        encoding_threads: the most that encode one output.
        point_bytes: so many encoded bytes lie at least between two places within a segment at which
            decoding can begin; with segments, gzip outputs get 0.04 to 0.4 % larger
            (docs/decisions/0017).
        part_bytes: of a part that is uploaded. With S3's 10,000 parts, 16 MiB reach 156 GiB, far
            above any target.
        min_part_bytes: S3 refuses smaller parts, except the last.
        most_parts: of one upload, as S3 takes them.
        copy_part_bytes: of a part that S3 copies. It takes up to 5 GiB in one, at the speed of one
            connection: smaller ones go side by side.
        copy_slice_bytes: sources at least this large are copied into an output where their bytes
            need no change; of smaller ones that are compressed these are kept while they are read.
        kept_bytes: what one manifest may keep of its sources beside a row each. It is held as
            Python objects, and again as JSON while the commit is written.
        group_sources: the most sources of one group; keeps the manifest of one commit near 7 MB of
            JSON.
        window_objects: the most that one listing holds. With its row in the manifest a source takes
            about 1 KB: 50 MB, whatever the partition.
        small_object_bytes: S3 copies sources of at least so many bytes, each alone; by default
            those of half the target size.
        max_expansion: a source that decompresses to more than this many times its size, and to
            more than 16 MiB, is quarantined. gzip expands to at most 1,032 times.
        max_document_bytes: the largest plain content, of a format that is held whole. It does not
            depend on the machine: a group that is built again elsewhere must leave out the same
            sources.
        lambda_max_objects: a partition with more candidates goes to Spark: its commit log would
            take too much of one worker's memory.
        reads: sources that are read at the same time, fewer when S3 asks to slow down. S3 serves
            5,500 GETs a second below one prefix (docs/decisions/0040 has other numbers). Each takes
            a connection and, above 256 KiB, a thread, of which a Lambda function has 1,024; and at
            most half of the files that the process may have open.
        read_ahead_bytes: of sources fetched or waiting at the same time.
        sampled_bytes: larger sources are not kept for the second reading: a sample is six of them,
            as stored and as plain bytes.
        stretch_sources: so many are read a second time together, where all are.
        work_seconds: so long an invocation works; what is left then is for the next one. What
            Lambda gives beyond it (900 s in all) is for what was begun: a slow last group, a large
            copy, requests that are asked again.
        reader_grace_seconds: how long clean-up waits after the readers' table has ceased to show a
            source, for queries that were planned before. Athena ends a query after 30 minutes
            unless a quota says otherwise; longer ones are what ``retention_days`` is for.
        races: so often others may be first to write the next entry of a log. Each time another
            worker got its entry in: so many in a row is a defect.
    """

    whole_bytes: int = 16 * MIB
    block_bytes: int = MIB
    segment_bytes: int = 4 * MIB
    encoding_threads: int = 4
    point_bytes: int = 256 * 1024
    part_bytes: int = 16 * MIB
    min_part_bytes: int = 5 * MIB
    most_parts: int = 10_000
    copy_part_bytes: int = 512 * MIB
    copy_slice_bytes: int = 16 * MIB
    kept_bytes: int = 32 * MIB
    group_sources: int = 50_000
    window_objects: int = 50_000
    small_object_bytes: int | None = None
    max_expansion: int = 250
    max_document_bytes: int = 128 * MIB
    lambda_max_objects: int = 1_000_000
    reads: int = 256
    read_ahead_bytes: int = 64 * MIB
    sampled_bytes: int = 2 * MIB
    stretch_sources: int = 256
    work_seconds: float = 570.0
    reader_grace_seconds: int = 3_600
    races: int = 1_000

    @property
    def surely_whole_gzip_bytes(self) -> int:
        """A gzip object up to this size fits ``whole_bytes``, whatever it holds."""
        return self.whole_bytes // _DEFLATE_EXPANSION

    @property
    def most_uploaded_bytes(self) -> int:
        """The most that passes through a worker into one upload."""
        return self.most_parts * self.part_bytes


#: What every worker keeps to; tests take smaller ones.
USUAL = WorkerLimits()
