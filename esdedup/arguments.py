"""Checks the types of arguments against the type hints of a signature."""

import functools
import inspect
import numbers
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from esdedup.errors import SettingError

_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")

# Also accept numbers from other libraries, such as numpy.
_NUMBERS = {int: numbers.Integral, float: numbers.Real}


def checked(function: Callable[_Params, _Result]) -> Callable[_Params, _Result]:
    """Decorate a method to raise `SettingError` for arguments of the wrong type.

    Items of sequences are checked; contents of other containers are not.
    """
    signature = inspect.signature(function)
    # Resolved at the first call, because hints may name classes that are defined later.
    hints = functools.cache(lambda: typing.get_type_hints(function))

    @functools.wraps(function)
    def method(*args: _Params.args, **options: _Params.kwargs) -> _Result:
        (_, itself), *given = signature.bind(*args, **options).arguments.items()
        taker = itself if isinstance(itself, type) else type(itself)
        for name, value in given:
            check_type(name, value, hints()[name], taker=taker.__name__)
        return function(*args, **options)

    return method


def check_type(name: str, value: object, hint: Any, *, taker: str) -> None:
    """Raise `SettingError`, naming the class that takes the argument, if the value does not fit the hint."""
    if not _fits(value, hint):
        # The value may be secret, so the message names only its type.
        raise SettingError(f"{name} is {_named(type(value))}; {taker} needs {' or '.join(_expected(hint))}")


def _fits(value: object, hint: Any) -> bool:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in {typing.Union, types.UnionType}:
        return any(_fits(value, part) for part in parts)
    if origin is typing.Literal:
        return any(isinstance(value, type(part)) for part in parts)
    if origin is Sequence:
        return (
            isinstance(value, Sequence)
            and not isinstance(value, str)
            and all(_fits(each, parts[0]) for each in value)
        )
    kind = origin or hint
    return isinstance(value, _NUMBERS.get(kind, kind)) and (kind is bool or not isinstance(value, bool))


def _expected(hint: Any) -> list[str]:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in {typing.Union, types.UnionType}:
        return [each for part in parts for each in _expected(part)]
    if origin is typing.Literal:
        return list(map(repr, parts))
    if origin is Sequence:
        return [f"a list of {parts[0].__name__}"]
    return [_named(origin or hint)]


def _named(kind: type) -> str:
    if kind is types.NoneType:
        return "None"
    return f"{'an' if kind.__name__[0] in 'aeiouAEIO' else 'a'} {kind.__name__}"
