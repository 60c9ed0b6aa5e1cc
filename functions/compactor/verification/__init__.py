"""Published commits, proven again by what is there.

deep       a commit read as the destination's readers read it, beside its sources
originals  what one reader saw in all sources of a commit
adopt      the verb: a log that is gone, rebuilt from outputs and sources
rehearsal  a store in which outputs are put together and not stored
"""
