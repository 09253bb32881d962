"""Additions to an embedded node: language analyzers, `GET /`, and the refusal of foreign requests.

The Elasticsearch modules that answer `GET /` and register Lucene's language analyzers are not published, so
this module does both. Elasticsearch would also accept a form posted by any web page, such as
one that sends `POST /index/_close`, so an interceptor refuses requests from the pages of other sites.
"""

import json
from typing import Any

import jpype

from esdedup.origins import is_foreign, is_known_host

_ANALYSIS = "org.elasticsearch.index.analysis"
_CODES = (
    "arabic:ar armenian:hy basque:eu bengali:bn brazilian:br bulgarian:bg catalan:ca cjk:cjk czech:cz "
    "danish:da dutch:nl english:en estonian:et finnish:fi french:fr galician:gl german:de greek:el "
    "hindi:hi hungarian:hu indonesian:id irish:ga italian:it latvian:lv lithuanian:lt norwegian:no "
    "persian:fa portuguese:pt romanian:ro russian:ru sorani:ckb spanish:es swedish:sv turkish:tr"
)
LANGUAGES = dict(each.split(":") for each in _CODES.split())
"""Languages with an analyzer: names in Elasticsearch to codes in Lucene. Thai needs a larger Java runtime."""


def add_languages(node: Any) -> None:
    """Register the language analyzers, before the node starts."""
    registry = _instance(node, "org.elasticsearch.indices.IndicesService").getAnalysis()
    in_registry = jpype.JClass(f"{_ANALYSIS}.AnalysisRegistry")
    ready = _field(in_registry, "prebuiltAnalysis").get(registry)
    factories = _field(
        jpype.JClass(f"{_ANALYSIS}.AnalysisRegistry$PrebuiltAnalysis"), "analyzerProviderFactories"
    )
    known = jpype.JClass("java.util.HashMap")(factories.get(ready))
    # All indices share one analyzer per language, which is created on first use.
    caching = jpype.JClass("org.elasticsearch.indices.analysis.PreBuiltCacheFactory$CachingStrategy").ONE
    factory = jpype.JClass(f"{_ANALYSIS}.PreBuiltAnalyzerProviderFactory")
    for name, code in LANGUAGES.items():
        java_class = f"org.apache.lucene.analysis.{code}.{'CJK' if name == 'cjk' else name.title()}Analyzer"
        make = jpype.JProxy("java.util.function.Supplier", dict={"get": jpype.JClass(java_class)})
        known.putIfAbsent(name, factory(name, caching, make))
    factories.set(ready, known)


def refuse_foreign_requests(node: Any) -> None:
    """Refuse unknown hosts and requests from other sites' pages; call it before the node starts."""
    interceptor = _field(jpype.JClass("org.elasticsearch.rest.RestController"), "interceptor")
    # Elasticsearch 8.19 lacks the second method; a `JProxy` may implement a missing method.
    methods = {"intercept": _intercept, "allowsBrowserSafelistedContentType": lambda _: False}
    interceptor.set(
        _rest_controller(node), jpype.JProxy("org.elasticsearch.rest.RestInterceptor", dict=methods)
    )


def _intercept(request: Any, channel: Any, _: Any, is_accepted: Any) -> None:
    """Accept a request, or respond with 403."""

    def header(name: str) -> str | None:
        value = request.header(name)
        return None if value is None else str(value)

    is_ours = is_known_host(header("Host") or "") and not is_foreign(str(request.method()), header)
    if not is_ours:
        forbidden = jpype.JClass("org.elasticsearch.rest.RestStatus").FORBIDDEN
        message = "this node refuses unknown hosts and requests from the pages of other sites"
        channel.sendResponse(jpype.JClass("org.elasticsearch.rest.RestResponse")(forbidden, message))
    is_accepted.onResponse(jpype.JBoolean(is_ours))


def answer_root(node: Any, *, name: str) -> None:
    """Answer `GET /` and `HEAD /`; call it before the node starts."""
    route = jpype.JClass("org.elasticsearch.rest.RestHandler$Route")
    method = jpype.JClass("org.elasticsearch.rest.RestRequest$Method")
    routes = jpype.JClass("java.util.ArrayList")([route(method.GET, "/"), route(method.HEAD, "/")])

    def handle(_request: Any, channel: Any, _client: Any) -> None:
        status = jpype.JClass("org.elasticsearch.rest.RestStatus").OK
        answer = jpype.JClass("org.elasticsearch.rest.RestResponse")
        channel.sendResponse(answer(status, "application/json", json.dumps(_product(node, name))))

    handler = {"handleRequest": handle, "routes": lambda: routes, "getName": lambda: "esdedup_main_action"}
    _rest_controller(node).registerHandler(jpype.JProxy("org.elasticsearch.rest.RestHandler", dict=handler))


def _product(node: Any, name: str) -> dict[str, Any]:
    state = _instance(node, "org.elasticsearch.cluster.service.ClusterService").state()
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
        "tagline": "You Know, for Search",
    }


def _instance(node: Any, class_name: str) -> Any:
    return node.injector().getInstance(jpype.JClass(class_name).class_)


def _rest_controller(node: Any) -> Any:
    """Return the controller that routes HTTP requests to their handlers."""
    transport = _instance(node, "org.elasticsearch.http.HttpServerTransport")
    transport_class = jpype.JClass("org.elasticsearch.http.AbstractHttpServerTransport")
    return _field(transport_class, "dispatcher").get(transport)


def _field(java_class: Any, name: str) -> Any:
    """Return a private field of a Java class after making it accessible."""
    found = java_class.class_.getDeclaredField(name)
    found.setAccessible(True)
    return found
