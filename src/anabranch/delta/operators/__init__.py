"""Operators that eat changes and give changes, one algorithm per file."""
