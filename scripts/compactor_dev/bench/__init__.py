"""``make bench ARGS="worker|queries|entrance|exit …"``: one harness, four scenarios.

    command    options, and which scenario runs
    measure    one process: wall and CPU time; rounds, spreads and ratios; tables
    front      an S3 with latency: sources from memory, all else from the S3 upstream
    server     the embedded S3 and the front, as the scenarios use them
    datasets   what is compacted, and digests of the records that outputs must hold
    worker     one worker beside other loops (``loops``), or two versions (``either`` starts any);
               ``worker_results``, and ``speeds``, by which a plan estimates
    queries    engines (``engines``) on the same records, before and after compaction
    entrance   events into one table, by the often described way (``sketch``) and by ours
    exit       tables of small files, maintained by Spark beside a writer

Each candidate is a process of its own; candidates take their turns within a round, and ratios are
formed within a round. Candidates and servers share the machine.
"""
