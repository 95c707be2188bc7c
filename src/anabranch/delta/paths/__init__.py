"""Paths of any length over facts that come and go."""
