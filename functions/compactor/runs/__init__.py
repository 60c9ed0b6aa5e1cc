"""The run of one partition: the order of the verbs, and the account of them.

partition  from the listing to published outputs, in one worker
given      what such a run is given, and what it did
progress   how far it has come: what all workers share; window: what is planned at once
unlike     sources that only look like what was compacted before
recorder   its receipt, however it ends; receipts: what a receipt says
place      where the next call of a run goes on in a partition
listings   what tells it which objects there are; earlier: what was listed before the run
registered what became of those that events told of
unread     sources left alone for a reason that may pass
memory     how a process that compacts keeps its memory
resting    whether nothing is left to be done, written down for discovery
"""
