"""``make bench ARGS="worker|queries|entrance|exit …"``: one harness, four scenarios.

    command    options, and choosing the scenario
    measure    measured processes: wall and CPU time; rounds, spreads, ratios and tables
    front      an S3 with latency: sources from memory, everything else from the S3 upstream
    server     the embedded S3 and the front, for the scenarios
    datasets   the sources, and digests of the records that outputs must contain
    worker     a worker compared with plain loops (``loops``), or with another version (``either``
               starts any); ``worker_results``, and ``speeds``, from which plans estimate
    queries    engines (``engines``) on the same records, before and after compaction
    entrance   events into one table, by the commonly described method (``sketch``) and by ours
    exit       tables of small files, maintained by Spark while a writer appends

Each candidate is a separate process; candidates take turns within a round, and ratios are computed
within a round. Candidates and servers share the machine.
"""
