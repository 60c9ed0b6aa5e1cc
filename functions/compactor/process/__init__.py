"""The worker's own process.

background  work in a thread of its own
memory      the garbage collector and the allocator, tuned for many short-lived objects
processors  how many processors the process may use
"""
