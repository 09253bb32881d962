"""The needs of a stream of articles: nodes, memory, disk, cores, requests, forests.

`model` computes a plan from a workload and from unit costs, which `costs` reads. Unit costs that were
measured beforehand are in the package (`unit_costs.json`, made by `python -m benchmarks unit-costs --keep`).
"""
