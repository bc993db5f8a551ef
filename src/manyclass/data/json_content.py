"""Parse JSON from untrusted files and check it against dataclasses.

A dataclass is the schema: `as_declared(Place, {"file": 1, ...})` returns a `Place` if no required field is missing,
none is unknown, and each value has the declared type.
"""

import dataclasses
import json
import reprlib
import types
import typing
from typing import Annotated, Any, TypeVar, get_args, get_origin

Declared = TypeVar("Declared")

# An int must fit 64 bits; a Count must also be non-negative.
Count = Annotated[int, "not negative"]
LARGEST = (1 << 63) - 1
_shortened = reprlib.Repr()
_shortened.maxstring = _shortened.maxother = 60


def shown(value: Any) -> str:
    """Return the `repr` of a value, shortened for messages."""
    return _shortened.repr(value)


def parse_json(text: bytes | str) -> Any:
    """Parse JSON (as bytes, UTF-8); ValueError also for deep nesting, very long numbers and repeated names."""
    try:
        return json.loads(text.decode() if isinstance(text, bytes) else text, object_pairs_hook=_without_duplicates)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 (byte {error.start})") from error


def parse_object(text: bytes | str) -> dict[str, Any]:
    """Parse a JSON object, as `parse_json` does."""
    value = parse_json(text)
    if not isinstance(value, dict):
        raise ValueError(f"it is a {type(value).__name__}, not a JSON object")
    return value


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{shown(next(name for name in names if names.count(name) > 1))} appears twice")
    return found


def as_declared(kind: type[Declared], value: Any, place: str = "") -> Declared:
    """Check that a parsed value matches a declared type, and convert it; an error names the place and the value.

    The type is a dataclass, a plain type, `Count`, a list, tuple or dict of such types, or a union of them.
    """
    if dataclasses.is_dataclass(kind):
        return typing.cast(Declared, _as_dataclass(kind, value, place))
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        if as_declared(arguments[0], value, place) < 0:
            raise _wrong(place, value)
        return value
    if origin in (list, tuple, dict) and not isinstance(value, dict if origin is dict else list):
        raise _wrong(place, value)
    if origin in (list, tuple):
        return origin(as_declared(arguments[0], part, f"{place}[{number}]") for number, part in enumerate(value))
    if origin is dict:
        parts = {name: as_declared(arguments[1], part, f"{place}.{name}") for name, part in value.items()}
        return typing.cast(Declared, parts)
    if origin in (types.UnionType, typing.Union):
        for one in arguments:
            try:
                return as_declared(one, value, place)
            except ValueError:
                continue
        raise _wrong(place, value)
    return _as_plain(kind, value, place)


def _as_plain(kind: Any, value: Any, place: str) -> Any:
    if kind is Any:
        return value
    if kind is float and type(value) is int:
        value = float(value) if abs(value) <= LARGEST else value
    # Compare types exactly, because a bool is an instance of int.
    if type(value) is not kind or (kind is int and abs(value) > LARGEST):
        raise _wrong(place, value)
    return value


def _as_dataclass(kind: Any, value: Any, place: str) -> Any:
    if not isinstance(value, dict):
        raise _wrong(place or "it", value)
    declared = {about.name: about for about in dataclasses.fields(kind) if about.init}
    hints = typing.get_type_hints(kind, include_extras=True)
    prefix = f"{place}." if place else ""
    unknown = sorted(set(value) - set(declared))
    if unknown:
        raise ValueError(f"{prefix}{shown(unknown[0])[1:-1]} is unknown")
    for name, about in declared.items():
        needed = about.default is dataclasses.MISSING and about.default_factory is dataclasses.MISSING
        if needed and name not in value:
            raise ValueError(f"{prefix}{name} is missing")
    return kind(**{name: as_declared(hints[name], part, f"{prefix}{name}") for name, part in value.items()})


def _wrong(place: str, value: Any) -> ValueError:
    return ValueError(f"{place} is {shown(value)}")
