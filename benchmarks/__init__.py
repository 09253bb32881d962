"""Compares esdedup with its peers in one run: ``python -m benchmarks NAME… --json FILE``."""
