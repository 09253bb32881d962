"""Lets an embedded node answer `GET /`, by which clients and tools see what they speak to.

The module that answers it elsewhere is not published.
"""

import json
from typing import Any

import jpype

from esdedup.node.internals import instance, rest_controller

_TAGLINE = "You Know, for Search"


def answer_root(node: Any, *, name: str) -> None:
    """Make a node that has not been started answer `GET /` and `HEAD /`.

    Args:
        node: The node.
        name: Its name.
    """
    route = jpype.JClass("org.elasticsearch.rest.RestHandler$Route")
    method = jpype.JClass("org.elasticsearch.rest.RestRequest$Method")
    routes = jpype.JClass("java.util.ArrayList")([route(method.GET, "/"), route(method.HEAD, "/")])

    def handle(_request: Any, channel: Any, _client: Any) -> None:
        status = jpype.JClass("org.elasticsearch.rest.RestStatus").OK
        answer = jpype.JClass("org.elasticsearch.rest.RestResponse")
        channel.sendResponse(answer(status, "application/json", json.dumps(_product(node, name))))

    handler = {"handleRequest": handle, "routes": lambda: routes, "getName": lambda: "esdedup_main_action"}
    rest_controller(node).registerHandler(jpype.JProxy("org.elasticsearch.rest.RestHandler", dict=handler))


def _product(node: Any, name: str) -> dict[str, Any]:
    """Return what Elasticsearch says of itself."""
    state = instance(node, "org.elasticsearch.cluster.service.ClusterService").state()
    build = jpype.JClass("org.elasticsearch.Build").current()
    lucene = jpype.JClass("org.elasticsearch.index.IndexVersion").current().luceneVersion()
    return {
        "name": name,
        "cluster_name": str(state.getClusterName().value()),
        "cluster_uuid": str(state.metadata().clusterUUID()),
        "version": {
            "number": str(build.version()),
            "build_flavor": str(build.flavor()),
            "build_type": str(build.type().displayName()),
            "build_hash": str(build.hash()),
            "build_date": str(build.date()),
            "build_snapshot": bool(build.isSnapshot()),
            "lucene_version": str(lucene),
            "minimum_wire_compatibility_version": str(build.minWireCompatVersion()),
            "minimum_index_compatibility_version": str(build.minIndexCompatVersion()),
        },
        "tagline": _TAGLINE,
    }
