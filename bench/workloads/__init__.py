"""Streams of triples as numbers, from fixed seeds, and the queries that are asked of them."""
