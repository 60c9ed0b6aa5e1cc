"""Maintenance of one table by Spark, as specified by an order.

    opening       opens the table of an order: catalogs and extensions of the session
    iceberg       the actions of Iceberg's Spark module, one commit per partition
    delta         OPTIMIZE, REORG and VACUUM
      delta_number  rewrites a partition as a given number of files
      delta_log     reads commits from the log
    where         a partition as a filter of each format
    rows          row count and two hashes over rows
    java          helpers that py4j lacks

Other writers have priority: a rewrite gives way to any commit made first. Nothing is deleted before
its replacement's rows were compared with it, and old versions are kept for as long as the rule
says. ``maintain_tables.py`` starts the work, whose sequence is that of
:mod:`compactor_tables.maintenance_job`.
"""
