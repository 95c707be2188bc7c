"""Other engines at the same work: each in a process of its own, with the stream as numbers and already pruned.

What a peer is given is its best case: tables that hold only what fits the query's patterns, each row once, in the
peer's own format; only its evaluation is timed.
"""
