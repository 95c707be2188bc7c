"""Connectivity in sliding windows: which vertices hang together through the edges of a window."""
