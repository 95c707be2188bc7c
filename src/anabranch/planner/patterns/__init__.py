"""Analysis of a plan, before anything is decided: which columns are needed, and which facts its patterns match.

Patterns of property graphs and of triples become facts and conjunctions of facts. Nothing here runs or keeps rows.
"""
