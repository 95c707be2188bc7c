"""Flows: what a spec and a leaf are, what windows bring at an instant, and how batches travel from leaves to the root.

A flow is started from specs when a query begins, and goes one tick at each instant.
"""
