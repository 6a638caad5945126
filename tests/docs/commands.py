#!/usr/bin/env python3
"""Runs the commands of the documents and compares what they print with what stands there.

A command is a line that starts with "$ " in a fenced block; the lines below it, up to the next one, are what it prints.

- Numbers are masked and runs of blanks are one blank, unless the block is marked exact.
- A line that is "…" stands for any number of lines; "…" within a line for any text.
- A command with nothing below it must end with exit code 0. One that shows its output may end with 0 or 1.
- "$ cat FILE" shows a file: what stands below is written to FILE, for the commands behind it.
- Each document has a folder of its own, in which its commands run one after the other. `fmha` is the command under test, and
  `cases` the folder of case files.

A comment before a block says more about the whole block:

    <!-- commands: exact -->                 numbers are compared too
    <!-- commands: setup FILE -->            FILE of tests/docs is copied into the folder first
    <!-- commands: not run, REASON -->       counted and listed with the reason

- `python3` is the interpreter that --python names, with the package of the tree and the libraries of the build.

Usage: commands.py --fmha PROGRAM --root TREE [--python PROGRAM] [DOCUMENT…]. Without documents: README.md, docs and every README.md of a
room. Exit code 0: all as written, 1: not.
"""

import argparse
import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

HERE = pathlib.Path(__file__).resolve().parent
MARK = re.compile(r"^<!-- commands: (.*) -->$")
NUMBER = re.compile(r"[-+]?\d[\d.,]*(e[-+]?\d+)?|\binf\b")
SECONDS = 900


class Mistake(Exception):
    """A document that this test cannot read."""


@dataclass
class Command:
    text: str
    line: int
    shown: list = field(default_factory=list)
    exact: bool = False
    setup: str = ""
    not_run: str = ""


def commands_of(text):
    """The commands of a document, in order."""
    found, mark, fence, current = [], {}, None, None
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if fence is None:
            match = MARK.match(stripped)
            if match:
                mark = parse_mark(match.group(1), number)
            elif stripped.startswith("```"):
                fence, current = line[: len(line) - len(line.lstrip())], None
            elif stripped:
                mark = {}
        elif stripped == "```":
            fence, mark = None, {}
        elif line[len(fence):].startswith("$ "):
            current = Command(line[len(fence) + 2:], number, **mark)
            found.append(current)
        elif current is not None and current.text.endswith("\\") and not current.shown:
            current.text = current.text[:-1] + line[len(fence):]
        elif current is not None:
            current.shown.append(line[len(fence):])
    return found


def parse_mark(text, number):
    if text == "exact":
        return {"exact": True}
    if text.startswith("setup "):
        return {"setup": text.removeprefix("setup ").strip()}
    if text.startswith("not run, "):
        return {"not_run": text.removeprefix("not run, ").strip()}
    raise Mistake(f'line {number}: "commands: {text}" is not allowed; allowed: exact, setup FILE, not run, REASON')


def masked(line, exact):
    line = line.rstrip()
    return line if exact else " ".join(NUMBER.sub("N", line).split())


def pattern_of(shown, exact):
    """A regular expression over the masked lines, each with a line feed."""
    parts = []
    for line in shown:
        if line.strip() == "…":
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            pieces = [re.escape(piece) for piece in masked(line, exact).split("…")]
            parts.append(r"[^\n]*".join(pieces) + r"\n")
    return re.compile("".join(parts))


def differs(command, printed):
    """What is wrong with `printed`, as text; empty when nothing is."""
    shown = list(command.shown)
    while shown and not shown[-1].strip():
        shown.pop()
    lines = [masked(line, command.exact) for line in printed.rstrip("\n").split("\n")]
    if pattern_of(shown, command.exact).fullmatch("".join(line + "\n" for line in lines)):
        return ""
    written = [masked(line, command.exact) for line in shown]
    return "\n".join(difflib.unified_diff(written, lines, "written", "printed", lineterm="", n=2))


def run(command, folder, environment):
    return subprocess.run(
        ["bash", "-c", command.text], cwd=folder, env=environment, stdin=subprocess.DEVNULL, timeout=SECONDS,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)


def failure_of(command, folder, environment):
    """What is wrong with a command, as text; empty when nothing is."""
    if command.setup:
        shutil.copy(HERE / command.setup, folder)
    file = re.fullmatch(r"cat (\S+)", command.text)
    if file and command.shown:
        (folder / file.group(1)).write_text("\n".join(command.shown) + "\n", encoding="utf-8")
        return ""
    try:
        ran = run(command, folder, environment)
    except subprocess.TimeoutExpired:
        return f"it takes more than {SECONDS} seconds"
    allowed = (0, 1) if command.shown else (0,)
    if ran.returncode not in allowed:
        return f"exit code {ran.returncode}\n{ran.stdout[-2000:]}"
    return differs(command, ran.stdout) if command.shown else ""


def documents_of(root):
    listed = [root / "README.md", root / "CONTRIBUTING.md", *root.glob("docs/**/*.md")]
    for room in ("dispatcher", "kernels", "reference", "harness", "cases", "parity", "reports", "tests"):
        listed += root.glob(f"{room}/**/*.md")
    return sorted(set(listed))


def check(documents, root, fmha, python=None):
    """Runs everything and prints a ledger; the number of failures, or of nothing at all."""
    ran, left, failures = 0, [], 0
    with tempfile.TemporaryDirectory() as scratch:
        programs = pathlib.Path(scratch, "bin")
        programs.mkdir()
        (programs / "fmha").symlink_to(fmha)
        if python:
            (programs / "python3").symlink_to(python)
        environment = dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}", LC_ALL="C.UTF-8", FMHA_JIT_DIR=f"{scratch}/jit",
                           PYTHONPATH=str(root.resolve() / "dispatcher" / "python"), PYTHONDONTWRITEBYTECODE="1",
                           FMHA_LIBRARY_DIR=str(fmha.parent.parent / "lib"))
        for count, document in enumerate(documents):
            name = os.path.relpath(document, root)
            folder = pathlib.Path(scratch, str(count))
            folder.mkdir()
            (folder / "cases").symlink_to(root.resolve() / "cases")
            for command in commands_of(document.read_text(encoding="utf-8")):
                place = f"{name}:{command.line}: {command.text}"
                if command.not_run:
                    left.append(f"{place}\n    {command.not_run}")
                    continue
                ran += 1
                wrong = failure_of(command, folder, environment)
                if wrong:
                    failures += 1
                    print(f"FAILED {place}\n{wrong}\n")
    for one in left:
        print(f"not run {one}")
    print(f"{ran} commands run, {failures} not as written, {len(left)} not run")
    return failures if ran else 1


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    arguments.add_argument("--fmha", required=True, type=pathlib.Path)
    arguments.add_argument("--root", required=True, type=pathlib.Path)
    arguments.add_argument("--python", type=pathlib.Path)
    arguments.add_argument("documents", nargs="*", type=pathlib.Path)
    given = arguments.parse_args()
    documents = given.documents or documents_of(given.root)
    try:
        return 1 if check(documents, given.root, given.fmha.resolve(), given.python) else 0
    except Mistake as mistake:
        print(mistake)
        return 1


if __name__ == "__main__":
    sys.exit(main())
