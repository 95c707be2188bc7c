"""RDF in and out: streams of triples, static graphs, and SPARQL's result formats. pyoxigraph reads the syntaxes."""
