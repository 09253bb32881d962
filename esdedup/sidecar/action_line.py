"""Reads the action lines of bulk requests, with the same verdicts as Elasticsearch. Pure.

Elasticsearch reads JSON in its own way: comments and a byte order mark may be there, keys that come twice may
not, and a number is an id by its digits. The common lines are read fast; whatever is unusual, carefully.
"""

import json
import re
from typing import Any, NoReturn

import orjson

from esdedup.sidecar.refusals import BulkMalformed

Action = tuple[str, dict[str, Any]]
"""The operation that is meant, and its parameters as Elasticsearch reads them: none is null, and the index,
the id, the routing and the pipeline are strings."""

OPERATIONS = frozenset(("create", "delete", "index", "update"))

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_TEXTS = frozenset(("_id", "_index", "op_type", "pipeline", "routing", "version_type"))
_LONGS = frozenset(("if_primary_term", "if_seq_no", "version"))
_INT = "retry_on_conflict"
_BOOLEANS = frozenset(("list_executed_pipelines", "require_alias", "require_data_stream"))
_COMMON_TEXTS = frozenset(("_id", "_index", "pipeline", "routing"))
_VERSION_TYPES = frozenset(("external", "external_gt", "external_gte", "internal"))
# The version that is none: any may be there.
_ANY_VERSION = -3

_ILLEGAL = "illegal_argument_exception"
_UNREADABLE = "x_content_parse_exception"
_CUT_OFF = "x_content_e_o_f_exception"

_SPACE = " \t\r\n"
# A string or comment that does not end goes on to the end of the line: if it did not match, each of its
# quotes would be tried anew, which takes a time that is quadratic in the line's length.
_STRING_OR_COMMENT = re.compile(
    r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|(?P<comment>/\*.*?\*/|//[^\n]*)|/\*.*\Z', re.DOTALL
)
# Of a number; Elasticsearch takes no more.
_MOST_DIGITS = 1_000
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)


class _Number(str):
    """A number as it was written."""

    __slots__ = ()


class _DuplicateKey(ValueError):
    """A key comes twice in an object."""


def read_action_line(line: bytes, number: int) -> Action | None:
    """Read an action line.

    Args:
        line: Without its line break.
        number: Its number in the body, from 1; for messages.

    Returns:
        The operation and its parameters; None if the line is blank.

    Raises:
        BulkMalformed: Elasticsearch would refuse the whole request for this line.
    """
    try:
        action = orjson.loads(line)
    except orjson.JSONDecodeError:
        return _read_carefully(line, number)
    if type(action) is dict and len(action) == 1:
        ((operation, parameters),) = action.items()
        if operation in OPERATIONS and type(parameters) is dict and _is_common(parameters, line):
            return operation, parameters
    return _read_carefully(line, number)


def _is_common(parameters: dict[str, Any], line: bytes) -> bool:
    """Return whether parameters are read as they stand; makes strings of numbers."""
    strings = 1 + len(parameters)
    for key, value in parameters.items():
        if key in _COMMON_TEXTS:
            if type(value) is str:
                strings += 1
            elif type(value) is int and value > 0:
                parameters[key] = str(value)
            else:
                return False
        elif key != _INT or type(value) is not int or not 0 <= value < 2**31:
            return False
    # If a key came twice, the line has more strings than were found.
    return line.count(b'"') == 2 * strings and b"\\" not in line


def _read_carefully(line: bytes, number: int) -> Action | None:
    text = _decoded(line)
    if not text.strip(_SPACE):
        return None
    action, rest = _parsed(text)
    if not isinstance(action, dict):
        raise _unexpected(number, "START_OBJECT", action)
    if not action:
        raise _malformed(number, "expected FIELD_NAME but found [END_OBJECT]")
    operation, given = next(iter(action.items()))
    if operation not in OPERATIONS:
        raise _malformed(
            number, f"expected field [create], [delete], [index] or [update] but found [{operation}]"
        )
    if not isinstance(given, dict):
        raise _unexpected(number, "START_OBJECT or END_OBJECT", given)
    parameters = {key: _parameter(key, value, number) for key, value in given.items() if value is not None}
    if len(action) > 1:
        raise _malformed(number, "expected END_OBJECT but found [FIELD_NAME]")
    if rest:
        _refuse_rest(rest, number)
    _refuse_combinations(operation, parameters, number)
    if operation == "index" and parameters.get("op_type") == "create":
        operation = "create"
    return operation, parameters


def _decoded(line: bytes) -> str:
    """Return a line as text, without what Elasticsearch skips."""
    try:
        # It takes half a character, too.
        text = line.removeprefix(BYTE_ORDER_MARK).decode(errors="surrogatepass")
    except UnicodeDecodeError as error:
        raise BulkMalformed(400, _UNREADABLE, f"[1:{error.start + 1}] Invalid UTF-8") from error
    return _STRING_OR_COMMENT.sub(lambda found: " " if found["comment"] else found[0], text)


def _parsed(text: str) -> tuple[Any, str]:
    """Return the first value in a text, and what follows it."""
    start = len(text) - len(text.lstrip(_SPACE))
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        if error.pos >= len(text.rstrip(_SPACE)) or error.msg.startswith("Unterminated string"):
            raise BulkMalformed(400, _CUT_OFF, f"[1:{len(text) + 1}] Unexpected end of file") from error
        raise BulkMalformed(400, _UNREADABLE, f"[1:{error.pos + 1}] {error.msg}") from error
    except _DuplicateKey as error:
        raise BulkMalformed(400, _UNREADABLE, f"Duplicate field '{error}'") from error
    except ValueError as error:
        raise BulkMalformed(400, _UNREADABLE, str(error)) from error
    except RecursionError as error:
        raise BulkMalformed(400, _UNREADABLE, "nested too deeply") from error
    return value, text[end:].strip(_SPACE)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _DuplicateKey(key)
        found[key] = value
    return found


def _number(text: str) -> _Number:
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"Number value length ({len(text)}) exceeds the maximum allowed ({_MOST_DIGITS})")
    return _Number(text)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"Non-standard token '{name}'")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_int=_number, parse_float=_number, parse_constant=_refuse_constant
)


def _parameter(key: str, value: Any, number: int) -> Any:
    """Return the value of a parameter as Elasticsearch reads it."""
    if isinstance(value, dict) and key in ("_source", "dynamic_templates"):
        if key == "dynamic_templates":
            for each in value.values():
                if each is None or isinstance(each, list | dict):
                    raise BulkMalformed(400, _ILLEGAL, f"Expected text but found {_token(each)}")
        return value
    if isinstance(value, list | dict):
        raise _malformed(number, f"expected a simple value for field [{key}] but found [{_token(value)}]")
    if key in _TEXTS:
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if key == "version_type" and text not in _VERSION_TYPES:
            raise BulkMalformed(400, _ILLEGAL, f"No version type match [{text}]")
        return text
    if key in _LONGS:
        return _integer(value, bits=64, unreadable=_ILLEGAL)
    if key == _INT:
        return _integer(value, bits=32, unreadable="number_format_exception")
    if key in _BOOLEANS:
        return _boolean(value)
    if key != "_source":
        raise BulkMalformed(
            400, _ILLEGAL, f"Action/metadata line [{number}] contains an unknown parameter [{key}]"
        )
    if isinstance(value, _Number):
        raise BulkMalformed(400, "parse_exception", "could not parse bulk request body")
    return value


def _integer(value: Any, *, bits: int, unreadable: str) -> int:
    """Return a number without its fraction, as long as it has so many bits."""
    if isinstance(value, bool):
        raise BulkMalformed(400, _UNREADABLE, f"Current token ({_token(value)}) not numeric")
    is_short = len(value) <= _MOST_DIGITS and _NUMBER.fullmatch(value)
    if not is_short and not isinstance(value, _Number):
        raise BulkMalformed(400, unreadable, f'For input string: "{value}"')
    try:
        integer = int(value) if value.lstrip("+-").isdecimal() else int(float(value))
    except (OverflowError, ValueError):
        integer = 2**bits
    if not -(2 ** (bits - 1)) <= integer < 2 ** (bits - 1):
        kind = _UNREADABLE if isinstance(value, _Number) else unreadable
        raise BulkMalformed(400, kind, f"Numeric value ({value:.100}) out of range")
    return integer


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, _Number):
        raise BulkMalformed(400, _UNREADABLE, "Current token (VALUE_NUMBER) not of boolean type")
    if value not in ("", "false", "true"):
        raise BulkMalformed(
            400, _ILLEGAL, f"Failed to parse value [{value}] as only [true] or [false] are allowed."
        )
    return bool(value == "true")


def _refuse_combinations(operation: str, parameters: dict[str, Any], number: int) -> None:
    """Check that an operation may have its parameters, as far as that is checked for each line."""
    if operation == "delete" and parameters.get("dynamic_templates"):
        raise BulkMalformed(
            400, _ILLEGAL, f"Delete request in line [{number}] does not accept dynamic_templates"
        )
    if operation != "update":
        return
    version = parameters.get("version", _ANY_VERSION)
    if version != _ANY_VERSION or parameters.get("version_type", "internal") != "internal":
        raise BulkMalformed(
            400,
            _ILLEGAL,
            "Update requests do not support versioning. Please use `if_seq_no` and `if_primary_term` instead",
        )
    if parameters.get("require_data_stream"):
        raise BulkMalformed(
            400,
            _ILLEGAL,
            "Update requests do not support the `require_data_stream` flag, "
            "as data streams do not support update operations",
        )
    if parameters.get("dynamic_templates"):
        raise BulkMalformed(
            400, _ILLEGAL, f"Update request in line [{number}] does not accept dynamic_templates"
        )


def _refuse_rest(rest: str, number: int) -> NoReturn:
    """Refuse what follows an action on its line."""
    if rest[0] not in "[{":
        # It is no value: that is another error.
        _parsed(rest)
    raise _malformed(number, "unexpected data after the closing brace")


def _malformed(number: int, what: str) -> BulkMalformed:
    return BulkMalformed(400, _ILLEGAL, f"Malformed action/metadata line [{number}], {what}")


def _unexpected(number: int, expected: str, found: object) -> BulkMalformed:
    return _malformed(number, f"expected {expected} but found [{_token(found)}]")


def _token(value: object) -> str:
    """Return how Elasticsearch names what a value begins with."""
    match value:
        case None:
            return "VALUE_NULL"
        case bool():
            return "VALUE_BOOLEAN"
        case _Number():
            return "VALUE_NUMBER"
        case str():
            return "VALUE_STRING"
        case list():
            return "START_ARRAY"
        case _:
            return "START_OBJECT"
