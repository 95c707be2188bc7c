"""The RDF parts of the plain evaluator: values of literals, SPARQL's functions, matching of triples.

Invariant: nothing here raises because of data: an error in the sense of SPARQL is null.
"""
