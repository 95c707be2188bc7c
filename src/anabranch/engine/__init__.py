"""The engine: one set of queries alive in one process. `session` is the door; `engine` works without a query language.

stream.py buffers one stream; contents.py keeps the windows' unions; query.py steps one query; answers.py is what it
tells; checks.py refuses at registration; checkpoint.py is the bytes; engine.py moves all of it in the order of time.
"""
