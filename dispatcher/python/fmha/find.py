"""Where the shared libraries and the command lie: the folder that a variable names, this package, the source tree, the system."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_PRESETS = ("host", "command", "host-native")


def source_tree() -> Path | None:
    """The root of the source tree that this package is part of, None when it was installed."""
    root = _PACKAGE.parents[2]
    return root if (root / "dispatcher" / "include" / "fmha" / "fmha.h").is_file() else None


def _folders(kind: str) -> list[Path]:
    tree = source_tree()
    return [_PACKAGE / kind] + ([tree / "build" / preset / kind for preset in _PRESETS] if tree else [])


def library(name: str = "fmha") -> str:
    """The file of libfmha.so ("fmha") or libfmha_reference.so ("fmha_reference"). FMHA_LIBRARY_DIR names a folder that is
    looked into alone. Without a file the soname is left to the system's loader."""
    named = os.environ.get("FMHA_LIBRARY_DIR")
    folders = [Path(named)] if named else _folders("lib")
    for folder in folders:
        for file in (folder / f"lib{name}.so", folder / f"lib{name}.so.5"):
            if file.is_file():
                return os.path.abspath(file)  # the system's loader looks for a name without a folder elsewhere
    if named:
        raise FileNotFoundError(f"FMHA_LIBRARY_DIR is {named}, and there is no lib{name}.so in it")
    return f"lib{name}.so.5"


def opened(path: str, name: str = "fmha") -> ctypes.CDLL:
    """The library at `path`, as `library` gives it. Where it is nowhere, the OSError says where it was looked for and who has it."""
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        if os.sep in path:  # it is there, and the loader says what it lacks
            raise
        folders = ", ".join(map(str, _folders("lib")))
        raise OSError(f"lib{name}.so is neither in {folders} nor where the system's loader looks: build it (cmake --build build/host "
                      "--target fmha_c fmha_c_reference fmha), install the wheel or the package libfmha, which have it, or name its folder "
                      "in FMHA_LIBRARY_DIR") from error


def command() -> str | None:
    """The command fmha, which builds kernels: FMHA_COMMAND, this package, the source tree's build, PATH. None without one."""
    named = os.environ.get("FMHA_COMMAND")
    if named:
        return named
    for folder in _folders("bin"):
        if os.access(folder / "fmha", os.X_OK):
            return str(folder / "fmha")
    return shutil.which("fmha")


def run_command() -> None:
    """The command of this package, or of the source tree's build, with the arguments of this process, as `fmha` of an environment. Not that
    of PATH, which may be this one."""
    for folder in _folders("bin"):
        if os.access(folder / "fmha", os.X_OK):
            os.execv(folder / "fmha", ["fmha", *sys.argv[1:]])
    print(f"fmha: the command is not in {', '.join(map(str, _folders('bin')))}: build it (cmake --build build/host --target fmha), "
          "or install the wheel or the package fmha, which have it", file=sys.stderr)
    sys.exit(2)


def cache_folder() -> Path:
    """Where set-ups are kept when no folder is given: FMHA_JIT_DIR, else below the user's cache."""
    named = os.environ.get("FMHA_JIT_DIR")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fmha" / "jit"
