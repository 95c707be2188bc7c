"""Connectivity in sliding windows: which vertices the edges of a window connect."""
