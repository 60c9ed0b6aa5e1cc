"""Compiles the log store for the running Spark, and registers it for S3."""

from __future__ import annotations

import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped] # py4j has no annotations
from pyspark.sql import SparkSession

_ONE_DRIVER = (
    "Delta commits here by a plain PUT, so no other driver may write its tables at the same time:"
    " S3A creates nothing conditionally before Hadoop 3.4.2, and this is {}"
)
_CLASS = "s3compactor.ConditionalLogStore"
_SOURCE = "ConditionalLogStore.java"
_PREFIX = "spark.delta.logStore."
_SCHEMES = ("s3", "s3a", "s3n")
_OPTIONS = "org.apache.hadoop.fs.Options$CreateFileOptionKeys"
_CONDITIONAL = "FS_OPTION_CREATE_CONDITIONAL_OVERWRITE"


def use_conditional_commits(session: SparkSession) -> None:
    """Make this driver's commits to Delta tables on S3 conditional.

    Applies to all sessions of the driver, and to tables that have not been opened yet. Only the
    driver commits, so executors do not need the class. A log store set by spark-submit is kept.
    Nothing changes if S3A cannot create objects conditionally: :func:`one_driver_only` then
    returns a warning.

    Args:
        session: with the jars of Delta.
    """
    loader = _loader(session)
    if _is_configured(session) or not _creates_conditionally(loader):
        return
    if not _knows(loader, _CLASS):
        _compile(session, loader)
    # Set in the running context's configuration, as Delta ignores a session's settings here.
    context: Any = session.sparkContext
    conf = context._jsc.sc().conf()
    for scheme in _SCHEMES:
        conf.set(f"{_PREFIX}{scheme}.impl", _CLASS)


def one_driver_only(session: SparkSession) -> str:
    """Return a warning if two drivers could overwrite each other's commits; else empty."""
    if _is_configured(session):
        return ""
    jvm: Any = session._jvm
    return _ONE_DRIVER.format(jvm.org.apache.hadoop.util.VersionInfo.getVersion())


def _is_configured(session: SparkSession) -> bool:
    return any(name.startswith(_PREFIX) for name, _ in session.sparkContext.getConf().getAll())


def _loader(session: SparkSession) -> Any:
    """Return the class loader in which Spark, and so Delta, looks for classes by name."""
    jvm: Any = session._jvm
    return jvm.java.lang.Thread.currentThread().getContextClassLoader()


def _creates_conditionally(loader: Any) -> bool:
    try:
        loader.loadClass(_OPTIONS).getField(_CONDITIONAL)
    except Py4JJavaError:
        return False
    return True


def _knows(loader: Any, name: str) -> bool:
    try:
        loader.loadClass(name)
    except Py4JJavaError:
        return False
    return True


def _compile(session: SparkSession, loader: Any) -> None:
    """Compile with Janino, which Spark ships for its own code, as there may be no JDK."""
    jvm: Any = session._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(loader)
    compiler.cook(files(__package__).joinpath(_SOURCE).read_text(encoding="utf-8"))
    found = compiler.getBytecodes()
    with tempfile.TemporaryDirectory(prefix="log-store-") as directory:
        for name in found.keySet():
            path = Path(directory, f"{name.replace('.', '/')}.class")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(bytes(found.get(name)))
        loader.addURL(jvm.java.io.File(f"{directory}/").toURI().toURL())
        # Loaded now, as the directory is deleted.
        loader.loadClass(_CLASS)
