"""Values that callers give: read as what is needed, or refused in one sentence."""

from __future__ import annotations

import os
from typing import Any


def shown(value: Any) -> str:
    """A value in one short line of a message, arrays too."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:77] + "..."


def whole_number(what: str, value: Any) -> int:
    """The number as an int, whatever its type. Raises ValueError for another value."""
    try:
        if not isinstance(value, (str, bytes)) and int(value) == value:
            return int(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"{what} is {shown(value)}; a whole number is needed")


def number_of(value: Any, table: dict[str, int], what: str) -> int:
    """The C interface's number of a name or number. Raises ValueError with the names that there are."""
    try:
        number = table.get(value) if isinstance(value, str) else whole_number(what, value)
    except ValueError:
        number = None
    if number is None or number not in table.values():
        raise ValueError(f"{what} {shown(value)} is not known; allowed: {', '.join(table)}")
    return number


def flag(what: str, value: Any) -> bool:
    """0 or 1, None as 0. Raises ValueError for another value, which `bool` would take for true."""
    number = 0 if value is None else whole_number(what, value)
    if number not in (0, 1):
        raise ValueError(f"{what} is {number}; allowed: 0 and 1")
    return number == 1


def real_number(what: str, value: Any) -> float:
    """A number. Raises ValueError for another value."""
    try:
        if not isinstance(value, (str, bytes)):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"{what} is {shown(value)}; a number is needed")


def members(what: str, value: Any, count: int, names: str) -> tuple:
    """The values of a tuple, list or array of so many. Raises ValueError for another value."""
    try:
        found = () if isinstance(value, (str, bytes)) else tuple(value)
    except TypeError:
        found = ()
    if len(found) != count:
        raise ValueError(f"{what} is {shown(value)}; needed: ({names})")
    return found


def text(what: str, value: Any) -> str:
    """A string that C sees whole. Raises ValueError for another value."""
    if not isinstance(value, str):
        raise ValueError(f"{what} is {shown(value)}; a name is needed")
    if "\0" in value:
        raise ValueError(f"{what} is {shown(value)}; a text without a NUL is needed")
    return value


def path(what: str, value: Any) -> bytes:
    """The bytes of a path, whatever its encoding. Raises ValueError for another value."""
    if not isinstance(value, (str, bytes, os.PathLike)) or not (name := os.fsencode(value)) or b"\0" in name:
        raise ValueError(f"{what} is {shown(value)}; a path is needed")
    return name
