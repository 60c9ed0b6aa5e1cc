"""The process that does the work.

memory      the garbage collector and the allocator, tuned for many short-lived objects
processors  how many processors it may use
"""
