"""Leaves of the operator graph: at each instant they say how the matches, paths and components of windows changed.

They run first at each instant, before the operators above them, and keep what they need of their windows in budgets.
"""
