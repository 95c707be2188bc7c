"""What is particular to RDF in the plain evaluator: values of literals, SPARQL's functions, matching of triples.

Invariant: nothing here raises because of data: what SPARQL calls an error is null.
"""
