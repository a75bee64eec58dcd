"""Dataclasses to JSON and back, strictly: a record from a stranger is data, and only data.

Reading refuses what writing would never produce: unknown or missing fields, wrong types, NaN and
infinity, duplicate keys, files too large or too deeply nested.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import os
import re
import secrets
import tempfile
import time
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from .errors import RecordError

T = TypeVar("T")
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.S)
_PLAIN = (str, float, int, bool)
MAX_BYTES = 8 * 2**20  # the largest record of a long run is well under 1 MiB
MAX_DEPTH = 24
PROBE_BYTES = 64 * 1024
LEFTOVER_S = 3600.0
MAX_INTEGER = 2**63 - 1  # larger ones are no count, size or seed of ours


def to_json(value: Any) -> str:
    """Stable, diff-friendly JSON of a dataclass: one field a line, short lists on one line."""
    return _render(_plain(value), 0) + "\n"


def from_file(cls: type[T], path: Path) -> T:
    """Read a dataclass from a JSON file; raises RecordError naming file and field."""
    try:
        if path.exists() and not path.is_file():  # a pipe or device would be read for ever
            raise RecordError("is not a file", file=path)
        if path.stat().st_size > MAX_BYTES:
            raise RecordError(f"is larger than {MAX_BYTES // 2**20} MiB, no record is", file=path)
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"cannot be read: {error}", file=path) from error
    return from_text(cls, text, path)


def from_text(cls: type[T], text: str, path: Path) -> T:
    """Read a dataclass from JSON text; ``path`` is only for messages."""
    if _depth(text) > MAX_DEPTH:
        raise RecordError(f"is nested more than {MAX_DEPTH} levels deep", file=path)
    try:
        data = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=_small,
        )
    except json.JSONDecodeError as error:
        raise RecordError(f"is not JSON: {error.msg}", file=path, line=error.lineno) from None
    except ValueError as error:
        raise RecordError(str(error), file=path) from None
    return typing.cast(T, _build(cls, data, path, ""))


def write_atomically(path: Path, text: str) -> bool:
    """Write a file whole or not at all; returns whether its content changed.

    Raises RecordError where the folder cannot be written, and where something stands in the file's
    place that is no file: a device or a pipe would be replaced, a link may lead anywhere.
    """
    try:
        if path.is_symlink() or (path.exists() and not (path.is_file() or path.is_dir())):
            raise RecordError("is not a file, and is not written to", file=path)
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RecordError(f"cannot be written: {error.strerror or error}", file=path) from error
    # Named before it is there, so that an interrupt at any moment finds what to remove.
    part = path.parent / f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part"
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as out:
            out.write(text)
        part.chmod(0o644)
        part.replace(path)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise RecordError(f"cannot be written: {error.strerror or error}", file=path) from error
        raise
    return True


def ready_to_write(folder: Path) -> None:
    """Raise RecordError where a folder cannot take files: better before an hour of work than after.

    Removes what killed runs left half-written; another run's is younger than `LEFTOVER_S`.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(PROBE_BYTES))
            probe.flush()
        for part in folder.rglob(".*.part"):
            if time.time() - part.stat().st_mtime > LEFTOVER_S:
                part.unlink(missing_ok=True)
    except OSError as error:
        raise RecordError(f"cannot be written: {error.strerror or error}", file=folder) from error


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {f.name: _plain(getattr(value, f.name)) for f in fields}
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            raise RecordError(f"a record cannot hold {value}")
        return value
    if value is None or isinstance(value, (str, bool, int)):
        return value
    raise RecordError(f"a record cannot hold a {type(value).__name__}")


def _render(value: Any, indent: int) -> str:
    flat = json.dumps(value, ensure_ascii=False, allow_nan=False)
    nested = isinstance(value, dict) and any(isinstance(v, (dict, list)) for v in value.values())
    if not isinstance(value, (dict, list)) or not value:
        return flat
    simple = isinstance(value, list) and not any(isinstance(v, (dict, list)) for v in value)
    if simple or (len(flat) + indent <= 100 and not nested and isinstance(value, dict)):
        return flat
    pad, close = " " * (indent + 1), " " * indent
    if isinstance(value, dict):
        items = [
            f"{pad}{json.dumps(k, ensure_ascii=False)}: {_render(v, indent + 1)}"
            for k, v in value.items()
        ]
        return "{\n" + ",\n".join(items) + "\n" + close + "}"
    items = [pad + _render(v, indent + 1) for v in value]
    return "[\n" + ",\n".join(items) + "\n" + close + "]"


def _depth(text: str) -> int:
    """The deepest nesting of brackets; those in strings are none."""
    deepest = depth = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        mark = text[match.start()]
        if mark in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif mark in "]}":
            depth -= 1
    return deepest


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in pairs:
        if key in out:
            raise ValueError(f"has the key {key!r} twice")
        out[key] = value
    return out


def _no_constant(name: str) -> Any:
    raise ValueError(f"holds {name}, which is no number of a record")


def _small(text: str) -> int:
    value = int(text) if len(text) <= 20 else MAX_INTEGER + 1
    if abs(value) > MAX_INTEGER:
        raise ValueError(f"holds {text[:20]}…, which is no number of a record")
    return value


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"holds {text}, which is no finite number")
    return value


def _build(expected: Any, data: Any, path: Path, where: str) -> Any:
    if type(data) is expected and expected in _PLAIN:
        return _text(data, path, where) if expected is str else data
    origin = typing.get_origin(expected)
    if origin in (typing.Union, types.UnionType):
        options = typing.get_args(expected)
        if data is None and type(None) in options:
            return None
        rest = [o for o in options if o is not type(None)]
        return _build(rest[0], data, path, where)
    if origin is typing.Literal:
        if data not in typing.get_args(expected):
            raise _wrong(path, where, " or ".join(map(repr, typing.get_args(expected))), data)
        return data
    if origin is tuple:
        return _build_tuple(typing.get_args(expected), data, path, where)
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(data, dict):
            raise _wrong(path, where, "an object", data)
        item = typing.get_args(expected)[1]
        return {
            _text(k, path, where): _build(item, v, path, f"{where}.{k}") for k, v in data.items()
        }
    if dataclasses.is_dataclass(expected):
        return _build_dataclass(typing.cast(type, expected), data, path, where)
    if expected is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    if not isinstance(data, expected) or (isinstance(data, bool) and expected is not bool):
        raise _wrong(path, where, expected.__name__, data)
    return _text(data, path, where) if isinstance(data, str) else data


def _text(text: str, path: Path, where: str) -> str:
    """The text, unless it is half of a character, which no file can hold."""
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        raise _wrong(path, where, "text", text)
    return text


def _build_tuple(items: tuple[Any, ...], data: Any, path: Path, where: str) -> tuple[Any, ...]:
    if not isinstance(data, list):
        raise _wrong(path, where, "a list", data)
    if len(items) == 2 and items[1] is Ellipsis:
        if items[0] is float and all(type(v) is float for v in data):
            return tuple(data)  # the samples, which are most of what is read
        return tuple(_build(items[0], v, path, f"{where}[{i}]") for i, v in enumerate(data))
    if len(items) != len(data):
        raise _wrong(path, where, f"a list of {len(items)}", data)
    pairs = enumerate(zip(items, data, strict=True))
    return tuple(_build(t, v, path, f"{where}[{i}]") for i, (t, v) in pairs)


def _build_dataclass(cls: type, data: Any, path: Path, where: str) -> Any:
    if not isinstance(data, dict):
        raise _wrong(path, where, "an object", data)
    hints = _hints(cls)
    fields = {f.name: f for f in dataclasses.fields(cls)}
    place = where.lstrip(".") or "the record"
    for key in data:
        if key not in fields:
            raise RecordError(f"{place} has a field {key!r} that no record has", file=path)
    for name, f in fields.items():
        required = f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
        if required and name not in data:
            raise RecordError(f"{place} lacks the field {name!r}", file=path)
    values = {k: _build(hints[k], v, path, f"{where}.{k}") for k, v in data.items()}
    try:
        return cls(**values)
    except RecordError as error:
        raise RecordError(error.what, file=path) from None


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _wrong(path: Path, where: str, expected: str, data: Any) -> RecordError:
    shown = repr(data)
    shown = shown if len(shown) <= 40 else shown[:37] + "..."
    place = where.lstrip(".") or "the file"
    return RecordError(f"{place} should be {expected}, not {shown}", file=path)
