"""python3 -m fmha SCRIPT ARGUMENTS…: runs a client of the dispatcher's Python layer on these kernels, even if it puts another folder first."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__, file=sys.stderr)
        return 0 if len(sys.argv) > 1 else 2
    script = sys.argv[1]
    if not Path(script).is_file():
        print(f"fmha: there is no script {script}", file=sys.stderr)
        return 2
    # Clients put a folder of their own before all others; a module that is loaded already is not looked for.
    import fmha_dtype_contract  # noqa: F401
    import fmha_utils  # noqa: F401
    sys.argv = sys.argv[1:]
    sys.path[0] = str(Path(script).resolve().parent)
    runpy.run_path(script, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
