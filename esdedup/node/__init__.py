"""The embedded Elasticsearch: runs the real server from its published jars in child processes.

Requires the extra ``node``. For evaluation, demos and tests; listens on the loopback interface only.
"""

from esdedup.node.control import Cluster as Cluster
from esdedup.node.control import default_data as default_data
from esdedup.node.control import find as find
from esdedup.node.control import start as start
from esdedup.node.control import stop as stop
from esdedup.node.distribution import DEFAULT_VERSION as DEFAULT_VERSION
