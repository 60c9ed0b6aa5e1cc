"""Turn many small S3 objects into few large ones, without losing or doubling a record.

The eight verbs, one module each, and what each hands to the next:

    discover    settings              -> work items, one per partition
    plan        listing, log          -> groups of sources
    compact     group                 -> a pending output that nobody can read
    verify      pending output        -> nothing, or an IntegrityError
    commit      pending output        -> one more entry in the partition's commit log
    publish     commit                -> the output becomes readable
    cleanup     commits past retention-> their sources are deleted
    report      receipts              -> one account of the run

``progress`` is where the verbs of one partition meet; ``run_partition`` works through it in one
process, the driver of the Spark job through many. ``clean_up_partition`` is the same for
``cleanup``, days later, with a ``proof`` of each output in between. ``restore`` undoes it all for
one source. ``model``, ``errors``, ``settings`` and ``ports`` are what everything speaks; only
``stores`` talks to S3.
"""

__version__ = "0.1.0"
