"""Planner: turns the algebra of a query into a graph of incremental operators; the snapshot evaluator answers the rest.

queries, plan     the entry: `plan_query` walks a query's algebra, part by part, and decides
    subqueries        subqueries of expressions become columns of the outer rows
  patterns/       1. the questions of the plan and its patterns, as facts and conjunctions; nothing is decided yet
  specs/          2. each operator of the plan becomes specs: descriptions of the operators and how each is made
  leaves/         3. when the query runs: windows and graphs become changes of matches, paths and components
  flow/           4. the specs are started, and batches pass from the leaves to the root at each instant
forecast          estimates how much the operators will keep
link_streams      finds the streams that may be reduced where they are read
choices           the decisions that a user or the engine makes beforehand
"""
