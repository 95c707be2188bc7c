"""Questions of a plan, read before anything is decided: which columns are needed, what patterns ask of the elements.

Patterns of property graphs and of triples become facts and conjunctions of facts. Nothing here runs or keeps rows.
"""
