"""Gives an embedded node the analyzers of languages, as any other Elasticsearch has them.

They are Lucene's, whose jar the node has; the module that gives them their names in Elasticsearch is not
published. It makes them in the same way, without settings; what can be set of them cannot be set here.
"""

from typing import Any

import jpype

from esdedup.node.internals import field, instance

_PACKAGE = "org.apache.lucene.analysis"
_INDEX = "org.elasticsearch.index.analysis"
LANGUAGES = {
    "arabic": "ar.ArabicAnalyzer",
    "armenian": "hy.ArmenianAnalyzer",
    "basque": "eu.BasqueAnalyzer",
    "bengali": "bn.BengaliAnalyzer",
    "brazilian": "br.BrazilianAnalyzer",
    "bulgarian": "bg.BulgarianAnalyzer",
    "catalan": "ca.CatalanAnalyzer",
    "cjk": "cjk.CJKAnalyzer",
    "czech": "cz.CzechAnalyzer",
    "danish": "da.DanishAnalyzer",
    "dutch": "nl.DutchAnalyzer",
    "english": "en.EnglishAnalyzer",
    "estonian": "et.EstonianAnalyzer",
    "finnish": "fi.FinnishAnalyzer",
    "french": "fr.FrenchAnalyzer",
    "galician": "gl.GalicianAnalyzer",
    "german": "de.GermanAnalyzer",
    "greek": "el.GreekAnalyzer",
    "hindi": "hi.HindiAnalyzer",
    "hungarian": "hu.HungarianAnalyzer",
    "indonesian": "id.IndonesianAnalyzer",
    "irish": "ga.IrishAnalyzer",
    "italian": "it.ItalianAnalyzer",
    "latvian": "lv.LatvianAnalyzer",
    "lithuanian": "lt.LithuanianAnalyzer",
    "norwegian": "no.NorwegianAnalyzer",
    "persian": "fa.PersianAnalyzer",
    "portuguese": "pt.PortugueseAnalyzer",
    "romanian": "ro.RomanianAnalyzer",
    "russian": "ru.RussianAnalyzer",
    "sorani": "ckb.SoraniAnalyzer",
    "spanish": "es.SpanishAnalyzer",
    "swedish": "sv.SwedishAnalyzer",
    "turkish": "tr.TurkishAnalyzer",
}
"""By their names in Elasticsearch: those of its module `analysis-common` that are of a language. That of Thai
needs a larger Java runtime."""


def add_languages(node: Any) -> None:
    """Give a node that has not been started the analyzers of languages."""
    registry = instance(node, "org.elasticsearch.indices.IndicesService").getAnalysis()
    in_registry = jpype.JClass(f"{_INDEX}.AnalysisRegistry")
    ready = field(in_registry, "prebuiltAnalysis").get(registry)
    factories = field(
        jpype.JClass(f"{_INDEX}.AnalysisRegistry$PrebuiltAnalysis"), "analyzerProviderFactories"
    )
    known = jpype.JClass("java.util.HashMap")(factories.get(ready))
    for name, java_class in LANGUAGES.items():
        known.putIfAbsent(name, _factory_of(name, f"{_PACKAGE}.{java_class}"))
    factories.set(ready, known)


def _factory_of(name: str, java_class: str) -> Any:
    """Return what gives every index the same analyzer, made when the first one asks."""
    caching = jpype.JClass("org.elasticsearch.indices.analysis.PreBuiltCacheFactory$CachingStrategy").ONE
    make = jpype.JProxy("java.util.function.Supplier", dict={"get": jpype.JClass(java_class)})
    return jpype.JClass(f"{_INDEX}.PreBuiltAnalyzerProviderFactory")(name, caching, make)
