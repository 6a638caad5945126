#!/usr/bin/env python3
"""Looks whether the calls of fmha can be typed that nothing runs: the examples of `fmha SUBCOMMAND --help`, and the lines of documents that stand
indented or that commands.py leaves out. Every option is one of that subcommand, with a value that it allows, and every case and every file of the
source tree that a call names exists, under the name that reports print where a call looks names up in reports. Nothing is run but the listing
of cases.

Usage: help_examples.py --fmha PROGRAM --root TREE. Exit code 0: all of them can, 1: not."""

import argparse
import pathlib
import re
import shlex
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "cmake"))
import commands  # noqa: E402
import help_pages  # noqa: E402


NAMES_OF_REPORTS = ("history",)  # subcommands that look cases up by parts of the names that are in a store


def help_of(fmha, *subcommand):
    ran = subprocess.run([fmha, *subcommand, "--help"], stdout=subprocess.PIPE, text=True, timeout=60, check=True)
    return help_pages.parse(ran.stdout)


def calls_of(lines):
    """The words of each call of fmha in an example; what a shell does around it is left out."""
    text = re.sub(r"\n      ", " ", "\n".join(lines))  # an example's own continuation
    for line in text.split("\n"):
        for part in re.split(r"\s\|\s", line):
            words = shlex.split(part, comments=True)
            if words[:1] == ["fmha"]:
                yield words[1:]


def wrong_options(words, page):
    """A sentence for each word that begins with "--" and is no option of `page`, or has a value that the option does not take."""
    options = {name: entry for entry in page.sections["Options"] for name in entry.names}
    for word, following in zip(words, words[1:] + [""]):
        if not word.startswith("--"):
            continue
        if word not in options:
            yield f"{word} is no option"
        elif options[word].choices and following not in options[word].choices:
            yield f"{word} does not take {following!r}"


def wrong_names(words, root, fmha):
    """A sentence for each case and each file of the tree that does not exist, or that a store has under another name. The first word is the
    subcommand."""
    families = [folder.name for folder in (root / "cases").iterdir() if folder.is_dir()]
    for word in words[1:]:
        family = word.split("/", 1)[0]
        if word.startswith("cases/"):
            if not (root / word).exists():
                yield f"there is no {word}"
        elif "/" in word and family in families:
            ran = subprocess.run([fmha, "verify", word, "--list", "--tier", "nightly", "--cases-root", root / "cases"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
            if ran.returncode != 0:
                yield ran.stderr.strip()
            elif words[0] in NAMES_OF_REPORTS and word not in ran.stdout:
                yield f"reports print {ran.stdout.strip()}, which {word} is no part of"


def lines_of(document):
    """The lines of a document that are commands which nobody runs."""
    text = document.read_text(encoding="utf-8")
    yield from (command.text for command in commands.commands_of(text) if command.not_run)
    yield from re.findall(r"^    (fmha .*)$", text, re.MULTILINE)


def check(fmha, root, documents):
    """Prints what cannot be typed and a count; the number of failures, or of nothing at all."""
    pages = {entry.names[0]: help_of(fmha, entry.names[0]) for entry in help_of(fmha).sections["Subcommands"]}
    found = [(f"fmha {name} --help", words) for name, page in pages.items() for words in calls_of(page.example)]
    for document in documents:
        found += [(str(document.relative_to(root)), words) for line in lines_of(document) for words in calls_of([line])]
    failures = 0
    for place, words in found:
        if words[0] not in pages:
            sentences = [f"{words[0]} is no subcommand"]
        else:
            sentences = [*wrong_options(words[1:], pages[words[0]]), *wrong_names(words, root, fmha)]
        for sentence in sentences:
            failures += 1
            print(f"FAILED {place}: fmha {shlex.join(words)}\n    {sentence}")
    print(f"{len(found)} calls, {failures} mistakes")
    return failures if found else 1


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    arguments.add_argument("--fmha", required=True, type=pathlib.Path)
    arguments.add_argument("--root", required=True, type=pathlib.Path)
    given = arguments.parse_args()
    return 1 if check(given.fmha.resolve(), given.root, commands.documents_of(given.root)) else 0


if __name__ == "__main__":
    sys.exit(main())
