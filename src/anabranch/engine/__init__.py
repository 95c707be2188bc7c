"""The engine: one set of queries alive in one process. `session` is the door; `engine` works without a query language.

progress.py says how far a stream is; stream.py buffers it; views.py says which of its events a window holds, and
contents.py keeps them as a graph or as triples; surroundings.py is what queries share; plans.py is what they run;
query.py steps one query; arrivals.py finds instants out as triples come; schedule.py says which and when; chains.py
makes streams of answers; corrections.py tells again what late events change; answers.py is what is told; checks.py
refuses at registration; reconcile.py changes the set of queries; checkpoint.py is the bytes.
"""
