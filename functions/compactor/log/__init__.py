"""The commit log: what was committed of which sources, on S3 and in memory.

log         CommitLog: reads a partition's log, and commits by one create-if-absent PUT
entries     Commit and the Output it names; state: what a log says, a pure fold over its entries
encoding    entries and checkpoints as they lie on S3
stored      the logs of a destination, found without knowing its partitions
identity    which log a state is; whole: whether it is all there; seen: what a process knows of it
witness     what keeps the number of an entry taken, should the entry be deleted
manifest    where each source lies in its output; slices: how its bytes come back from there
columnar    what a commit keeps of an output that holds rows instead of bytes; rejects: which of
            its rejected records wait for other columns
contents    which contents a log has of which keys; digests: the sources that it names
schemes     how a destination's sources are divided into partitions
left_alone  the sources a commit left alone, counted by their reasons
at_rest     partitions in which nothing was left to be done, as discovery recognises them
"""
