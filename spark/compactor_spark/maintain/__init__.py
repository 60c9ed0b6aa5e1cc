"""Maintenance of one table by Spark, as an order says it.

    job           the order of work: mark, rewrite and compare each partition, then the other steps
    opening       the table of an order: catalogs and extensions of the session
    engines       what is asked of Iceberg and of Delta
      iceberg     the actions of Iceberg's Spark module, one commit a partition
      delta       OPTIMIZE, REORG and VACUUM
        delta_number  a partition as so many files
        delta_log     what the log says of its commits
    where         a partition as each of them names it
    rows          how many rows there are, and two hashes over them
    java          what py4j does not do by itself

Tables belong to their writers: a partition that was written lately is left, who commits first has
right of way, nothing is let go of before the rows of what replaced it were compared, and what was
before stays until it can no longer be undone. ``maintain_tables.py`` beside this package starts it.
"""
