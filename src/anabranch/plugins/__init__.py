"""Engines of others behind small interfaces of ours."""
