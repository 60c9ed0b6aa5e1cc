"""Access to the sources of one group, and to the output that Spark writes before the upload.

There are two kinds of access, which give the same rows:

- **staged** through the store: sources are read with If-Match into a temporary directory that
  driver and executors share. It works with any S3 endpoint, on one machine.
- **native**: Spark reads ``s3://`` (on EMR) or ``s3a://`` itself, and writes below the run's own
  records, which query engines do not read. Such reads are not conditional on the listed ETag, so
  the sources are listed again afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pyspark.sql import SparkSession

from compactor.encoding.parquet_footer import ParquetFooter
from compactor.errors import InvalidInput
from compactor.model import ObjectGroup, Quarantined, SourceObject

#: Setting in the job's Spark configuration that selects the access.
ACCESS_CONF = "spark.compactor.access"
STAGED = "staged"
_SCHEMES = ("s3", "s3a")


@dataclass(slots=True)
class StagedSources:
    """The sources of one group, ready to be read as Parquet.

    Attributes:
        footers: of each readable source, in key order.
        paths: what to read for the sources of one schema, by the schema's digest.
        examples: one source of each schema, by the schema's digest.
        keys: of the sources, by the value of ``Workspace.order`` in their rows.
        quarantined: sources that are not complete Parquet objects.
    """

    footers: list[tuple[SourceObject, ParquetFooter]] = field(default_factory=list)
    paths: dict[str, list[str]] = field(default_factory=dict)
    examples: dict[str, SourceObject] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    quarantined: list[Quarantined] = field(default_factory=list)

    def add(self, source: SourceObject, footer: ParquetFooter, path: str, name: str) -> None:
        """Add a readable source.

        Args:
            source: that is readable.
            footer: of the source.
            path: what to read; several sources may share it.
            name: the value of ``Workspace.order`` in its rows.
        """
        self.keys[name] = source.key
        self.footers.append((source, footer))
        self.examples.setdefault(footer.schema_digest, source)
        paths = self.paths.setdefault(footer.schema_digest, [])
        if path not in paths[-1:]:
            paths.append(path)

    @property
    def rows(self) -> int:
        """Number of rows in all sources, by their footers."""
        return sum(footer.rows for _, footer in self.footers)


class Workspace(Protocol):
    """Temporary storage for one group; closed after its output was uploaded."""

    @property
    def order(self) -> str:
        """The field of Spark's ``_metadata`` that sorts rows by the keys of their sources."""
        ...

    @property
    def output_path(self) -> str:
        """Where Spark writes the output; does not exist yet."""
        ...

    def stage(self, sources: Sequence[SourceObject]) -> StagedSources:
        """Make the sources readable for Spark.

        Raises:
            SourceChanged: a source differs from the listing.
        """
        ...

    def check(self, group: ObjectGroup) -> None:
        """Check that Spark read the sources as they were listed.

        Raises:
            SourceChanged: a source differs from the listing.
        """
        ...

    def output(self) -> Iterator[bytes]:
        """Yield the bytes of the one Parquet file that Spark wrote.

        Raises:
            IntegrityError: there is no such file, or more than one.
        """
        ...

    def close(self) -> None:
        """Remove everything."""
        ...


def access(asked: str, master: str, schemes: frozenset[str]) -> str:
    """Return the access to use: ``staged``, ``s3`` or ``s3a``.

    Args:
        asked: ``auto``, or the access that the job's configuration asks for.
        master: Spark's, such as ``local[2]`` or ``yarn``. With a local master, executors share the
            driver's disk.
        schemes: those for which Hadoop has a file system.

    Raises:
        InvalidInput: no such access is possible here.
    """
    if asked not in {"auto", STAGED, *_SCHEMES}:
        raise InvalidInput(ACCESS_CONF, asked, "auto, staged, s3 or s3a")
    local = master.startswith("local")
    if asked == STAGED and not local:
        raise InvalidInput(ACCESS_CONF, asked, f"s3 or s3a: executors of {master} share no disk")
    if asked in _SCHEMES and asked not in schemes:
        raise InvalidInput(ACCESS_CONF, asked, f"a scheme Hadoop knows here: {sorted(schemes)}")
    if asked != "auto":
        return asked
    if local:
        return STAGED
    for scheme in _SCHEMES:
        if scheme in schemes:
            return scheme
    accepted = "a cluster on which Hadoop reads s3:// or s3a:// (hadoop-aws), or a local master"
    raise InvalidInput("spark.master", master, accepted)


def access_of(session: SparkSession) -> str:
    """Return the access that this job uses.

    Raises:
        InvalidInput: no access is possible.
    """
    context = session.sparkContext
    asked: str = context.getConf().get(ACCESS_CONF) or "auto"
    return access(asked, str(context.master), frozenset(filter(_Known(session), _SCHEMES)))


class _Known:
    """Callable that asks Hadoop whether it has a file system for a scheme."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def __call__(self, scheme: str) -> bool:
        jvm: Any = self._session._jvm
        java = self._session._jsparkSession
        try:
            configuration = java.sessionState().newHadoopConf()
            jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, configuration)
        except Exception:
            return False
        return True
