"""What an embedded node gets that any other Elasticsearch has, or that it needs without a log-in.

The modules that answer `GET /`, and that name Lucene's analyzers of languages, are not published, so both are
added here. Pages of other sites are refused: Elasticsearch itself would carry out a form of any page
(`POST /index/_close`), but asks an object, ours, whether to carry out a request.
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
"""The languages that have an analyzer, by their names in Elasticsearch, with their codes in Lucene. That of
Thai needs a larger Java runtime."""


def add_languages(node: Any) -> None:
    """Give a node that has not been started the analyzers of languages."""
    registry = _instance(node, "org.elasticsearch.indices.IndicesService").getAnalysis()
    in_registry = jpype.JClass(f"{_ANALYSIS}.AnalysisRegistry")
    ready = _field(in_registry, "prebuiltAnalysis").get(registry)
    factories = _field(
        jpype.JClass(f"{_ANALYSIS}.AnalysisRegistry$PrebuiltAnalysis"), "analyzerProviderFactories"
    )
    known = jpype.JClass("java.util.HashMap")(factories.get(ready))
    for name, code in LANGUAGES.items():
        java_class = "CJK" if name == "cjk" else name.title()
        full_name = f"org.apache.lucene.analysis.{code}.{java_class}Analyzer"
        known.putIfAbsent(name, _factory_of(name, full_name))
    factories.set(ready, known)


def _factory_of(name: str, java_class: str) -> Any:
    """Return what gives every index the same analyzer, made when the first one asks."""
    caching = jpype.JClass("org.elasticsearch.indices.analysis.PreBuiltCacheFactory$CachingStrategy").ONE
    make = jpype.JProxy("java.util.function.Supplier", dict={"get": jpype.JClass(java_class)})
    return jpype.JClass(f"{_ANALYSIS}.PreBuiltAnalyzerProviderFactory")(name, caching, make)


def refuse_foreign_requests(node: Any) -> None:
    """Make a node that has not been started refuse unknown hosts and the requests of foreign pages."""
    interceptor = _field(jpype.JClass("org.elasticsearch.rest.RestController"), "interceptor")
    # 8.19 lacks the second method, which a class written in Python could not leave out there.
    methods = {"intercept": _intercept, "allowsBrowserSafelistedContentType": lambda _: False}
    interceptor.set(
        _rest_controller(node), jpype.JProxy("org.elasticsearch.rest.RestInterceptor", dict=methods)
    )


def _intercept(request: Any, channel: Any, _: Any, is_accepted: Any) -> None:
    """Tell Elasticsearch whether to carry out a request; a refused one is answered here."""

    def header(name: str) -> str | None:
        value = request.header(name)
        return None if value is None else str(value)

    is_ours = is_known_host(header("Host") or "") and not is_foreign(str(request.method()), header)
    if not is_ours:
        forbidden = jpype.JClass("org.elasticsearch.rest.RestStatus").FORBIDDEN
        message = "this node answers neither unknown hosts nor pages of other sites"
        channel.sendResponse(jpype.JClass("org.elasticsearch.rest.RestResponse")(forbidden, message))
    is_accepted.onResponse(jpype.JBoolean(is_ours))


def answer_root(node: Any, *, name: str) -> None:
    """Make a node of that name, which has not been started, answer `GET /` and `HEAD /`."""
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
    """Return what decides which handler answers a request over HTTP."""
    transport = _instance(node, "org.elasticsearch.http.HttpServerTransport")
    transport_class = jpype.JClass("org.elasticsearch.http.AbstractHttpServerTransport")
    return _field(transport_class, "dispatcher").get(transport)


def _field(java_class: Any, name: str) -> Any:
    """Return a private field of a class, which can be read and written."""
    found = java_class.class_.getDeclaredField(name)
    found.setAccessible(True)
    return found
