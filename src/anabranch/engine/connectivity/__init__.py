"""Connectivity in sliding windows as a workload of its own: edges in, components, their changes and pairs out.

It shares the indexes of `delta.connectivity` with queries that ask `connected` or `component`. Beside them these need
terms, a dictionary and rows; here edges stay arrays, and only what is told becomes a Python object.
"""
