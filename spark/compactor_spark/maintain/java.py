"""Helpers for Java and Scala objects that py4j lacks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession


def walked(iterable: Any) -> Iterator[Any]:
    """Yield the elements of a Java or Scala iterable."""
    elements = iterable.iterator()
    while elements.hasNext():
        yield elements.next()


def static_get(jvm: Any, name: str) -> Any:
    """Return the result of the static method ``get()`` of a class that also overloads it."""
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return loader.loadClass(name).getMethod("get", None).invoke(None, None)


def singleton(package: Any, name: str) -> Any:
    """Return the instance of a Scala object."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")


def activate(session: SparkSession) -> None:
    """Make a session the active one of this thread.

    Iceberg takes its catalog, and Delta its settings, from the active session. SQL statements
    activate their session; other calls do not.
    """
    jvm: Any = session._jvm
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)
