"""``make bench``: how fast one worker is, beside what people use otherwise.

    command      options, and the run as a whole
    datasets     what is compacted; digests: what must come out again
    tools        nginx, wrk and s5cmd, fetched into build/ where they are missing
    front        nginx before the embedded S3: cached reads, latency, faults, TLS;
                 certificate: made for it, and what makes clients trust it
    server       both of them for one data set, and its objects in them
    clients      who is measured: worker, naive (three Python loops), and two command lines;
                 fastest: a loop that checks nothing; proving: the same with the work of proofs
    measure      one process: CPU time, wall time, peak memory; instructions: what it executes,
                 where that is counted; others: what everybody else used meanwhile
    session      rounds over lanes and clients; every output is read back and compared
    against      two versions of the worker in turn; checkout: the tree of the older one;
                 either: the script that starts any version's worker
    load         the server's own ceiling
    results      build/bench.json; table: what docs/performance.md shows of it

Client and server share the machine. A lane is one way to reach the server: without latency,
with latency to the first byte, with latency and faults, with latency and TLS.
"""
