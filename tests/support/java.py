"""How the tests' Java processes are started: each of them works for seconds.

Compiling anew what has been compiled, to make it faster in the long run, and the threads of a
garbage collector for large heaps take half of such a process's time.
"""

from __future__ import annotations

from collections.abc import Mapping

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

#: What Spark's own programs look for: the driver, what finds its classpath, masters and workers.
ENVIRONMENT: Mapping[str, str] = {
    "SPARK_SUBMIT_OPTS": SHORT_LIVED,
    "SPARK_LAUNCHER_OPTS": SHORT_LIVED,
    "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED,
}
