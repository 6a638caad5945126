#!/usr/bin/env python3
"""add_places.py SOURCE OUT PLACES: copies the files that a new family changes, with its lines added (places.txt).

Writes the copies to OUT, from which it removes all else, and prints how many lines were added, and to how many files. Exit code 1 and a sentence when a place is not
found, or found twice. With --files PLACES it prints the names of the files, and does nothing else.
"""
import pathlib
import shutil
import sys


def read_places(path):
    """(file, the line before, the line to add) of every place."""
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            yield [part.strip() for part in line.split(" | ")]


def main():
    if sys.argv[1] == "--files":
        print(";".join(dict.fromkeys(name for name, _, _ in read_places(pathlib.Path(sys.argv[2])))), end="")
        return
    source, out, places = map(pathlib.Path, sys.argv[1:])
    files = {}
    lines = 0
    for name, before, added in read_places(places):
        text = files.setdefault(name, (source / name).read_text().splitlines())
        at = [n for n, line in enumerate(text) if line.strip().startswith(before)]
        if len(at) != 1:
            sys.exit(f"{places}: \"{before}\" begins {len(at)} lines of {name}")
        text.insert(at[0] + 1, added)
        lines += 1
    shutil.rmtree(out, ignore_errors=True)
    for name, text in files.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text("\n".join(text) + "\n")
    print(f"{lines} lines in {len(files)} file{'s' if len(files) != 1 else ''}")


if __name__ == "__main__":
    main()
