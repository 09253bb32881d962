"""Estimates the resources for a stream of articles: nodes, memory, disk, cores, requests and forests.

`model` computes a plan from a workload and from unit costs, which `costs` reads. The package includes
measured unit costs (`unit_costs.json`, written by `python -m benchmarks unit-costs --keep`).
"""
