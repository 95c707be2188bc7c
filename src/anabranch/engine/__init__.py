"""The engine: one set of queries alive in one process. `session` is the door; `engine` works without a query language.

progress.py says how far a stream is; stream.py buffers it; contents.py keeps the windows' unions; query.py steps one
query; schedule.py says which and when; corrections.py tells again what late events change; answers.py is what is told;
checks.py refuses at registration; reconcile.py changes the set of queries; checkpoint.py is the bytes.
"""
