"""Reaches what a node has inside, where its published jars have no other way in."""

from typing import Any

import jpype


def instance(node: Any, class_name: str) -> Any:
    """Return the object of a class that a node has made for itself."""
    return node.injector().getInstance(jpype.JClass(class_name).class_)


def rest_controller(node: Any) -> Any:
    """Return what decides which handler answers a request over HTTP."""
    transport = instance(node, "org.elasticsearch.http.HttpServerTransport")
    transport_class = jpype.JClass("org.elasticsearch.http.AbstractHttpServerTransport")
    return field(transport_class, "dispatcher").get(transport)


def field(java_class: Any, name: str) -> Any:
    """Return a private field of a class, which can be read and written."""
    found = java_class.class_.getDeclaredField(name)
    found.setAccessible(True)
    return found
