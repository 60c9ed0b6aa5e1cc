"""Commits of Delta tables to S3 that take the place of no other driver's commit.

Open-source Delta commits to S3 with a plain PUT after a look whether the version is there. Of two
drivers that come to the same version concurrently, one writes over the other's commit, and its rows
are gone. The log store of this package creates the version with If-None-Match instead, which S3A
can since Hadoop 3.4.2, so that Delta hears of the other's commit, and takes the next version.
"""

from compactor_spark.log_store.installing import one_driver_only, use_conditional_commits

__all__ = ["one_driver_only", "use_conditional_commits"]
