"""What py4j does not do by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession


def walked(iterable: Any) -> Iterator[Any]:
    """The elements of something of Java or Scala that has an iterator."""
    elements = iterable.iterator()
    while elements.hasNext():
        yield elements.next()


def static_get(jvm: Any, name: str) -> Any:
    """What the static method ``get()`` of a class gives that has other methods of this name."""
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return loader.loadClass(name).getMethod("get", None).invoke(None, None)


def singleton(package: Any, name: str) -> Any:
    """The one instance of a Scala object."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")


def activate(session: SparkSession) -> None:
    """Make a session the one whose settings and catalogs count in this thread.

    Iceberg looks for a catalog, and Delta for its settings, in whatever session is the active one;
    what is not asked by a statement of SQL does not make its own session that.
    """
    jvm: Any = session._jvm
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)
