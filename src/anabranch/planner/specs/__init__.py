"""Specs of the operators of a plan, made while a query is planned: joins, filters, groups, orders, results, matchers.

A spec is a decision: the algorithm, its columns, and the specs below it. Nothing is started before a flow is.
"""
