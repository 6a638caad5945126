"""Runners that somebody holds, so that all of them can be released at once."""

from __future__ import annotations

import threading
import weakref
from typing import Any

_live: weakref.WeakSet[Any] = weakref.WeakSet()
_lock = threading.RLock()


def add(runner: Any) -> None:
    """Remembers a runner as long as somebody else holds it."""
    with _lock:
        _live.add(runner)


def release_all() -> None:
    """Cleans up every live runner, after the run that it is in. Never raises."""
    with _lock:
        runners = list(_live)
    for runner in runners:
        try:
            runner.cleanup()
        except Exception:  # of a lost device; the others are released all the same
            pass
