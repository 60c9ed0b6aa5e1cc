"""The fields of a run's input that say where, how fast and how long it works, and what follows.

They are part of :data:`compactor.settings.fields.FIELDS`.
"""

from __future__ import annotations

from compactor.settings.specs import GIB, MIB, TIB, FieldSpec, matching, number, one_of, whole

_RUN, _AFTER = "Execution", "After the commit"
_CLUSTER = matching(
    r"j-[A-Za-z0-9]{1,64}", "the id of a running EMR cluster, such as j-2AXXXXXXGAPLF"
)

EXECUTION_FIELDS = (
    FieldSpec(
        "lambda_max_objects",
        _RUN,
        1_000_000,
        whole(1, 100_000_000),
        "A partition with more candidates than this goes to Spark: its commit log would take"
        " too much of one worker's memory.",
    ),
    FieldSpec(
        "lambda_max_bytes",
        _RUN,
        64 * GIB,
        whole(1, 1024 * TIB),
        "A partition with more bytes of candidates than this goes to Spark.",
    ),
    FieldSpec(
        "lambda_max_seconds",
        _RUN,
        600,
        whole(1, 7 * 86_400),
        "A partition that one worker would take longer for goes to Spark; estimated by objects,"
        " bytes and format from the measured table in worker_speed.py. A Lambda function may"
        " run for 900.",
    ),
    FieldSpec(
        "spark_engine",
        _RUN,
        "emr",
        one_of("emr", "emr_serverless", "none"),
        "Where Spark runs: on an EMR cluster, which is made for the run unless emr_cluster_id"
        " names one; on EMR Serverless; or nowhere, and what would go to Spark is left as it is"
        " and reported.",
    ),
    FieldSpec(
        "emr_cluster_id",
        _RUN,
        None,
        _CLUSTER,
        "Add the Spark step to this running cluster, which is not terminated afterwards. Only"
        " with spark_engine emr.",
    ),
    FieldSpec(
        "max_concurrency", _RUN, 100, whole(1, 10_000), "How many partitions are compacted at once."
    ),
    FieldSpec(
        "read_concurrency",
        _RUN,
        256,
        whole(1, 1_024),
        "How many objects one worker reads at once at most; fewer when S3 asks to slow down.",
    ),
    FieldSpec(
        "memory_budget_bytes",
        _RUN,
        64 * MIB,
        whole(1 * MIB, 8 * GIB),
        "How many bytes one worker may have read ahead.",
    ),
    FieldSpec(
        "clean_up",
        _AFTER,
        "keep",
        one_of("keep", "delete"),
        "Keep the sources for ever, or delete them once retention has passed and their output"
        " has been checked again.",
    ),
    FieldSpec(
        "retention_days",
        _AFTER,
        30,
        number(0, 36_500),
        "Days from the commit until clean_up may delete its sources; fractions are accepted.",
    ),
)
