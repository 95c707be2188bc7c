"""Kernels: compiled loops over arrays, and the only code that depends on numba."""
