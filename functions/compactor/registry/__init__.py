"""The registry: objects known from a bucket's event notifications, instead of LIST.

events           decodes messages about objects: notifications and EventBridge
streams          which stream an object belongs to, and which partition its key names
items            what is stored for a key, and which of two events is later
registry_ports   the ports: the table of items, and what starts runs
registering      registers messages as items
starting         starts an execution when one is due, once
pending_listing  pending items as a listing of the source, and their state after a run

The commit log remains the source of truth. The registry only says where to look.
"""
