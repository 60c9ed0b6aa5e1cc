"""Objects known by their events: a bucket's own notifications, instead of LIST.

events       what S3 says of an object, out of a message: notification, EventBridge, SNS
streams      whose object it is: streams, and the partition of a key
items        what is remembered of a key; which of two events is the later one
registry_ports        where that is remembered, and what starts a run
registering  the verb: messages -> items
starting     the verb: what is due -> one execution, by a name of its own
pending_listing      what is pending, as a listing of the source; what becomes of it after a run

The commit log stays the truth. What is remembered here only says where to look.
"""
