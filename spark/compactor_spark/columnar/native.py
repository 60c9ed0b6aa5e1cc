"""Native access: Spark reads and writes S3 itself."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from compactor import layout
from compactor.encoding.parquet_footer import ParquetFooter, read_footer
from compactor.errors import IntegrityError, SourceChanged, UnreadableSource
from compactor.model import ObjectGroup, Quarantined, QuarantineReason, SourceObject
from compactor_spark.columnar.context import ColumnarContext
from compactor_spark.columnar.staging import StagedSources

# Hadoop treats other characters as patterns, normalises // and .., and skips names that start
# with _ or a dot. Such sources are copied to plain names.
_PLAIN_KEY = re.compile(r"(?:[A-Za-z0-9_=.+@~ -]+/)*[A-Za-z0-9][A-Za-z0-9_=.+@~ -]*")
_DOTS = re.compile(r"(?:^|/)\.\.?(?:/|$)")
_CONCURRENT_FOOTERS = 32


class NativeWorkspace:
    """A prefix among the run's records; see :class:`compactor_spark.columnar.staging.Workspace`.

    Args:
        scheme: ``s3`` or ``s3a``.
        group: that the workspace is for.
        context: has the store, and the settings that locate the run's records.
    """

    order = "file_path"

    def __init__(self, scheme: str, group: ObjectGroup, context: ColumnarContext) -> None:
        self._scheme = scheme
        self._store = context.store
        # Two attempts at one group must not share a prefix.
        name = f"{group.id}-{uuid.uuid4().hex[:8]}"
        self._bucket, self._prefix = layout.staging_prefix(context.settings, context.run_id, name)

    @property
    def output_path(self) -> str:
        """See the protocol."""
        return self._uri(self._bucket, f"{self._prefix}output")

    def stage(self, sources: Sequence[SourceObject]) -> StagedSources:
        """See the protocol."""
        staged = StagedSources()
        with ThreadPoolExecutor(_CONCURRENT_FOOTERS, thread_name_prefix="footer") as pool:
            # Each range read has If-Match, so the footer is that of the listed object.
            found = pool.map(self._footer, sources)
            for number, (source, footer) in enumerate(zip(sources, found, strict=True)):
                if isinstance(footer, UnreadableSource):
                    reason = QuarantineReason(footer.reason)
                    staged.quarantined.append(Quarantined(source, reason, footer.detail))
                else:
                    path = self._readable(number, source)
                    staged.add(source, footer, path, path)
        return staged

    def check(self, group: ObjectGroup) -> None:
        """List the group's keys, and check that each still has its ETag and modification time."""
        left = {source.key: source for source in group.sources}
        first, last = min(left), max(left)
        bucket = group.sources[0].bucket
        for found in self._listed(bucket, first, last):
            source = left.pop(found.key, None)
            if source is not None and not _same(source, found):
                raise SourceChanged(source.key, source.etag, found.etag)
        for source in left.values():
            raise SourceChanged(source.key, source.etag, "no object")

    def output(self) -> Iterator[bytes]:
        """See the protocol."""
        keys = [one.key for one in self._everything() if one.key.endswith(".parquet")]
        written = [key for key in keys if key.startswith(f"{self._prefix}output/part-")]
        if len(written) != 1:
            raise IntegrityError(f"Spark wrote {len(written)} Parquet objects instead of one")
        return self._store.open(self._bucket, written[0])

    def close(self) -> None:
        """See the protocol."""
        self._store.delete_sources(list(self._everything()))

    def _footer(self, source: SourceObject) -> ParquetFooter | UnreadableSource:
        try:
            return read_footer(partial(self._store.read_range, source), source.size)
        except UnreadableSource as error:
            return error

    def _readable(self, number: int, source: SourceObject) -> str:
        if _PLAIN_KEY.fullmatch(source.key) and not _DOTS.search(source.key):
            return self._uri(source.bucket, source.key)
        key = f"{self._prefix}sources/{number:08d}.parquet"
        self._store.put(self._bucket, key, self._store.read_range(source, 0, source.size))
        return self._uri(self._bucket, key)

    def _everything(self) -> Iterator[SourceObject]:
        for page in self._store.list_objects(self._bucket, self._prefix):
            yield from page

    def _listed(self, bucket: str, first: str, last: str) -> Iterator[SourceObject]:
        """List the objects from one key to another, both inclusive."""
        shared = next(
            (n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), None
        )
        prefix = first if shared is None else first[:shared]
        for page in self._store.list_objects(bucket, prefix, start_after=first[:-1]):
            for one in page:
                if one.key > last:
                    return
                yield one

    def _uri(self, bucket: str, key: str) -> str:
        return f"{self._scheme}://{bucket}/{key}"


def _same(listed: SourceObject, found: SourceObject) -> bool:
    # Manifests do not keep a source's modification time: 0.0 matches any.
    same_age = listed.last_modified in {0.0, found.last_modified}
    return listed.etag == found.etag and same_age
