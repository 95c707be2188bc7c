"""Connectivity in sliding windows as a separate workload: edges in; components, their changes and connected pairs out.

It shares the indexes of `delta.connectivity` with queries that ask `connected` or `component`. Queries also need terms,
a dictionary and rows; here edges stay arrays, and only results become Python objects.
"""
