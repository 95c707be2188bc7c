"""Support of the rules: what is known of graphs and sizes, which columns an operator reads, how plans are rebuilt."""
