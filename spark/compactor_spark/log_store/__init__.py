"""Delta commits to S3 that never overwrite another driver's commit.

Open-source Delta checks whether a version exists, and then commits it to S3 with a plain PUT. If
two drivers commit the same version concurrently, one overwrites the other's commit, whose rows are
lost. The log store of this package creates the version with If-None-Match instead, which S3A
supports since Hadoop 3.4.2. Delta then sees the other commit, and uses the next version.
"""

from compactor_spark.log_store.installing import one_driver_only, use_conditional_commits

__all__ = ["one_driver_only", "use_conditional_commits"]
