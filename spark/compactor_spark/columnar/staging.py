"""Where Spark finds the sources of one group, and where it leaves the output for the upload.

Two ways, which give the same rows:

- **staged** through the store: sources are read with If-Match into a temporary directory that
  driver and executors share. It works with any S3 endpoint, on one machine.
- **native**: Spark reads ``s3://`` (on EMR) or ``s3a://`` itself, and writes below the run's own
  records, where no query engine looks. Such reads are not pinned, so the sources are listed again
  afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pyspark.sql import SparkSession

from compactor.encoding.parquet_footer import ParquetFooter
from compactor.errors import InvalidInput
from compactor.model import ObjectGroup, Quarantined, SourceObject

#: Spark's own setting that says which way to take; read from the job's configuration.
ACCESS_CONF = "spark.compactor.access"
STAGED = "staged"
_SCHEMES = ("s3", "s3a")


@dataclass(slots=True)
class StagedSources:
    """The sources of one group, ready to be read as Parquet.

    Attributes:
        footers: of each readable source, in key order.
        paths: what to read for the sources of one schema, by the schema's digest.
        examples: one source of each schema.
        keys: of the sources, by what ``Workspace.order`` says of their rows.
        quarantined: sources that are no whole Parquet object.
    """

    footers: list[tuple[SourceObject, ParquetFooter]] = field(default_factory=list)
    paths: dict[str, list[str]] = field(default_factory=dict)
    examples: dict[str, SourceObject] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    quarantined: list[Quarantined] = field(default_factory=list)

    def add(self, source: SourceObject, footer: ParquetFooter, path: str, name: str) -> None:
        """One more readable source.

        Args:
            source: that is readable.
            footer: of it.
            path: what to read; it may be one that several share.
            name: what ``Workspace.order`` says of its rows.
        """
        self.keys[name] = source.key
        self.footers.append((source, footer))
        self.examples.setdefault(footer.schema_digest, source)
        paths = self.paths.setdefault(footer.schema_digest, [])
        if path not in paths[-1:]:
            paths.append(path)

    @property
    def rows(self) -> int:
        """What all footers say."""
        return sum(footer.rows for _, footer in self.footers)


class Workspace(Protocol):
    """Room for one group; made for it, and closed after its output was uploaded."""

    @property
    def order(self) -> str:
        """The field of Spark's ``_metadata`` that sorts rows by the keys of their sources."""
        ...

    @property
    def output_path(self) -> str:
        """Where Spark writes the output; nothing is there yet."""
        ...

    def stage(self, sources: Sequence[SourceObject]) -> StagedSources:
        """Make the sources readable for Spark.

        Raises:
            SourceChanged: one is not what was listed.
        """
        ...

    def check(self, group: ObjectGroup) -> None:
        """Make sure that what Spark read is what was listed.

        Raises:
            SourceChanged: a source is not what was listed.
        """
        ...

    def output(self) -> Iterator[bytes]:
        """The bytes of the one Parquet file that Spark wrote.

        Raises:
            IntegrityError: there is none, or more than one.
        """
        ...

    def close(self) -> None:
        """Remove everything; it is not read any more."""
        ...


def access(asked: str, master: str, schemes: frozenset[str]) -> str:
    """Which way to take: ``staged``, ``s3`` or ``s3a``.

    Args:
        asked: ``auto``, or the way that the job's configuration asks for.
        master: Spark's, such as ``local[2]`` or ``yarn``. Executors of a local one share the
            driver's disk.
        schemes: those for which Hadoop has a file system here.

    Raises:
        InvalidInput: there is no such way here.
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
    """The way this job takes.

    Raises:
        InvalidInput: there is none.
    """
    context = session.sparkContext
    asked: str = context.getConf().get(ACCESS_CONF) or "auto"
    return access(asked, str(context.master), frozenset(filter(_Known(session), _SCHEMES)))


class _Known:
    """Asks Hadoop whether it has a file system for a scheme."""

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
