"""From algebra to a graph of operators on changes; what has none is evaluated anew by the snapshot evaluator."""
