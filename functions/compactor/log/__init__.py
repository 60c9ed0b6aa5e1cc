"""The commit log: what was committed of which sources, on S3 and in memory.

numbered        NumberedLog: entries created if absent, each under the next number; gaps
log             CommitLog: one partition's commits in a numbered log
identity        the id of a state, named by its log entries and outputs, and its partitions
entries         Commit and the Output it names
manifest        maps sources to places in the output, and restores their bytes
encoding        entries and checkpoints as stored on S3
state           the state of a log: a pure fold over its entries
digests         compact sets of identities
counts          sources left alone, by reason; objects by size
log_reader      finds logs, and the commit of a key, without knowing the partitions
"""
