"""Demo data: the examples, and streams that are made up by number. `gen:` addresses read these streams as sources.

Invariant: no file is written and no clock is read here; an event is a function of its settings and of its number.
"""
