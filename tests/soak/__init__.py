"""Two sidecars, many feeders, and everything that can die or stop: is anything lost, doubled or different?

`make soak-sidecars` runs it at full size, `tests/integration/test_sidecar_feeders.py` a short form.
"""
