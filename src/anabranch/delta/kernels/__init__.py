"""Compiled code over arrays: the only place that knows numba."""
