"""The planner: from algebra to a graph of operators on changes; the snapshot evaluator answers the parts without one.

queries, plan     the entry: `plan_query` walks a query's algebra, part by part, and decides
    subqueries        subqueries of expressions become columns of the rows that ask them
  patterns/       1. what the plan and its patterns ask, as facts and conjunctions; nothing is decided yet
  specs/          2. each operator of the plan becomes specs: the operators to be, and how each is made
  leaves/         3. when the query runs: windows and graphs become changes of matches, paths and components
  flow/           4. the specs started, and batches passed on from the leaves to the root at each instant
forecast          how much the operators will keep
link_streams      which streams may be reduced where they are read
choices           what a user or the engine decides beforehand
"""
