"""The embedded Elasticsearch: the real server, from its published jars, in child processes.

Needs the extra ``node``. For trying out, demos and tests; it listens on the loopback interface only.
"""

from esdedup.node.control import DEFAULT_PORT, Cluster, RunningNode, default_data, find, start, stop
from esdedup.node.distribution import DEFAULT_VERSION, Progress, install

__all__ = [
    "DEFAULT_PORT",
    "DEFAULT_VERSION",
    "Cluster",
    "Progress",
    "RunningNode",
    "default_data",
    "find",
    "install",
    "start",
    "stop",
]
