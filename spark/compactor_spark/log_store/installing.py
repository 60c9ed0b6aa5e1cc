"""The log store, compiled for the Spark that runs, and made the one of S3."""

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
    """Let no commit of this driver to a Delta table on S3 take the place of another's.

    Counts for all sessions of the driver, and tables that were not opened yet. Only the driver
    commits, so executors need not have it. A log store that spark-submit names stands, and
    where S3A cannot create conditionally all stays as it is: :func:`one_driver_only` says so.

    Args:
        session: with the jars of Delta.
    """
    loader = _loader(session)
    if _is_configured(session) or not _creates_conditionally(loader):
        return
    if not _knows(loader, _CLASS):
        _compile(session, loader)
    # The running context's own: a session's own settings do not count here.
    context: Any = session.sparkContext
    conf = context._jsc.sc().conf()
    for scheme in _SCHEMES:
        conf.set(f"{_PREFIX}{scheme}.impl", _CLASS)


def one_driver_only(session: SparkSession) -> str:
    """The warning where two drivers could overwrite each other's commits; else empty."""
    if _is_configured(session):
        return ""
    jvm: Any = session._jvm
    return _ONE_DRIVER.format(jvm.org.apache.hadoop.util.VersionInfo.getVersion())


def _is_configured(session: SparkSession) -> bool:
    return any(name.startswith(_PREFIX) for name, _ in session.sparkContext.getConf().getAll())


def _loader(session: SparkSession) -> Any:
    """The one in which Spark, and so Delta, looks for classes by their name."""
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
    """By Janino, which every Spark brings along for its own code: there may be no JDK."""
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
        # Loaded here: the directory goes.
        loader.loadClass(_CLASS)
