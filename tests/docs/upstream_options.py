#!/usr/bin/env python3
"""Compares what docs/tile_engine.md says of the options of upstream's scripts with `fmha SUBCOMMAND --help`: options that work as they are exist on the
commands that it names, and so do the names that others have here; those that are not here exist nowhere; and none of upstream's is left out.

Usage: upstream_options.py --fmha PROGRAM --root TREE. Exit code 0: as written, 1: not."""

import argparse
import pathlib
import re
import sys

import help_examples

# Of fmha_benchmark.py (two of them of earlier revisions), fmha_full_benchmark.py, run_full_sweep.py and the enumeration.
UPSTREAM = frozenset("""--arch --workers --problems --no-verify --best --csv --no-csv --json --log --build-dir --clean --compile-only --filter
    --filter-file --tiles --num-splits --isolate --gpus --verify --receipt --category --variant --max-kernels --shape-timeout --output --variants
    --list --count-only""".split())
COMMANDS = ("enumerate", "generate", "build", "verify", "bench")


def tables(text):
    """The rows of each table whose first column is "option", as lists of cells."""
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in block.strip().split("\n")]
        if rows[0][0] == "option":
            found.append((rows[0], rows[2:]))
    return found


def options_in(cell):
    return re.findall(r"`(--[a-z-]+)", cell)


def mistakes(text, known):
    """A sentence for each thing that the document says and the commands' options (`known`: sets by command) do not bear out."""
    named = set()
    for heading, rows in tables(text):
        if heading[1] not in ("also", "here", "instead"):
            continue  # of another table: files that options write
        for row in rows:
            option = options_in(row[0])[0]
            named.add(option)
            if heading[1] == "instead":
                yield from (f"{option} is not here, the document says; fmha {name} has it" for name in COMMANDS if option in known[name])
                continue
            own = [option, *options_in(row[1])] if heading[1] == "also" else options_in(row[1])
            where = [name for name in COMMANDS if name in re.findall(r"\w+", row[2])]
            if not own or not where:
                yield f"{option}: the document names no option or no command"
            yield from (f"{option}: fmha {name} has no {one}" for one in own for name in where if one not in known[name])
    yield from (f"{option} is not in the document" for option in sorted(UPSTREAM - named))


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    arguments.add_argument("--fmha", required=True, type=pathlib.Path)
    arguments.add_argument("--root", required=True, type=pathlib.Path)
    given = arguments.parse_args()
    known = {name: {one for entry in help_examples.help_of(given.fmha.resolve(), name).sections["Options"] for one in entry.names}
             for name in COMMANDS}
    found = list(mistakes((given.root / "docs/tile_engine.md").read_text(encoding="utf-8"), known))
    print("\n".join([*found, f"{len(UPSTREAM)} options, {len(found)} mistakes"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
