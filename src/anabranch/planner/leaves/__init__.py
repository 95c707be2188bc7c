"""Leaves of the operator graph: report at each instant how the matches, paths and components of windows changed.

Leaves run first at each instant, before the operators above them, and keep their state within budgets.
"""
