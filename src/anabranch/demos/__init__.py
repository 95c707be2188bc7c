"""Demo data: the examples, and generated streams. `gen:` addresses read these streams as sources.

Invariant: no file is written and no clock is read here; an event is a function of its settings and of its number.
"""
