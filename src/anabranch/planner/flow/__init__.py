"""Flows: specs and leaves, the changes that windows deliver at an instant, and the way of batches from leaves to the
root.

A flow is started from specs when a query begins, and advances by one tick at each instant.
"""
