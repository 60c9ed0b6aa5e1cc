"""``make query-bench``: what queries gain by compaction, on engines that people use.

    command    options, and the run as a whole
    sets       what is queried: days of JSON events or CloudTrail, and what each query has to answer
    layouts    the same records as they arrived, compacted, as Parquet, and half of each
    lake       the embedded S3 with all layouts in it, and nginx before it, which logs requests
    access     requests, bytes and concurrency, by nginx's log
    catalog    the layouts as tables of a Glue, for engines that read tables
    asking     what an engine is asked, and what it answers
    engines    who queries; each in a process of its own, whose program is host
    host       the process of an engine, in a Python that has nothing of this project
    host_here  the same for Arrow and Spark, which this project needs itself
    statements  the queries in SQL
    trino_engine  Trino, which is a server
    session    turns over engines, layouts and queries; unequal answers end the run
    table      medians, for people
    fit        the model of seconds from the results of runs, its errors, and the goals

Seconds are those of this machine; requests and answers are the same everywhere.
"""
