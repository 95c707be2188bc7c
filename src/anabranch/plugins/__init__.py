"""Plug-ins: engines of other projects behind small interfaces."""
