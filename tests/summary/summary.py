#!/usr/bin/env python3
"""summary.py JUNIT: the end of `./run test`, from CTest's own record. The last lines of each failed test come once more, because a log of
thousands of tests is read from its end; then one line that a CI system greps for, `N passed, N failed, N skipped`."""

import sys
from xml.etree import ElementTree

MOST_TESTS = 10
MOST_LINES = 25


def summary(suite: ElementTree.Element) -> str:
    failed = [case for case in suite.iter("testcase") if case.get("status") == "fail"]
    parts = []
    for case in failed[:MOST_TESTS]:
        lines = (case.findtext("system-out") or "it printed nothing").rstrip().splitlines()
        parts += [f"--- {case.get('name')}, its last lines:", *lines[-MOST_LINES:]]
    if len(failed) > MOST_TESTS:
        parts.append(f"--- and {len(failed) - MOST_TESTS} more failed tests")
    total, failures, skipped, disabled = (int(suite.get(name, "0")) for name in ("tests", "failures", "skipped", "disabled"))
    parts.append(f"{total - failures - skipped - disabled} passed, {failures} failed, {skipped + disabled} skipped")
    return "\n".join(parts)


def main() -> int:
    try:
        print(summary(ElementTree.parse(sys.argv[1]).getroot()))
    except (OSError, ElementTree.ParseError, ValueError) as error:
        print(f"run: {sys.argv[1]} cannot be read, so nothing was counted: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
