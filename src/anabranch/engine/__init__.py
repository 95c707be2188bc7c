"""The engine runs one set of continuous queries in one process.

`session` is its public entry point; `engine` itself does not depend on a query language. The files:

    progress.py     watermarks of streams and splits
    stream.py       the buffer of a stream
    views.py        which events of a stream a window holds at an instant
    contents.py     these events as a property graph or as triples
    surroundings.py state that all queries share
    plans.py        the plans that queries run
    query.py        one step of one query
    arrivals.py     evaluation instants that depend on how many triples came
    schedule.py     which query is evaluated next, and when
    chains.py       streams made of answers
    corrections.py  answers that late events change
    answers.py      the answers that queries emit
    checks.py       refusals at registration
    reconcile.py    changes of the set of queries
    checkpoint.py   the state of the engine as bytes
"""
