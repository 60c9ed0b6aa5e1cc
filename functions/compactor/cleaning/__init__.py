"""Clean-up: long after the commit, the sources it names are deleted, and nothing else.

partition  the order of its steps, in one worker
work       which partitions have something to clean up
due        what becomes of each entry of a log
proof      that an output is what its commit says
decide     the verb: exactly the sources of one commit, by key and ETag
records    what is left beside the log once a commit is done with
receipts   what was done to one partition; report: to all of them
orphans    uploads that nobody can publish any more
"""
