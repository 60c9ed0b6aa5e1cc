"""How Spark reads the outputs that it merges into a table.

- **staged**: they are copied to a temporary directory that driver and executors share. It works
  with any S3 endpoint, on one machine.
- **s3** (on EMR) or **s3a**: Spark reads them where they are.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from compactor.errors import InvalidInput

#: Setting in the job's Spark configuration that selects the access.
ACCESS_CONF = "spark.compactor.access"
STAGED = "staged"
_SCHEMES = ("s3", "s3a")


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
