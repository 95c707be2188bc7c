"""Support of the rules: knowledge of graphs and sizes, the columns that operators read, and the rebuilding of plans."""
