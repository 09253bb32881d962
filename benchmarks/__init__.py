"""Compares esdedup with similar packages, its peers: ``python -m benchmarks NAME… --json FILE``."""
