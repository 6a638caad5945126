#!/usr/bin/env python3
"""Man pages and the completion of shells from what `fmha --help` and `fmha SUBCOMMAND --help` print, so that neither says anything else.

Usage: help_pages.py FMHA FOLDER: writes FOLDER/man1/fmha.1, fmha-SUBCOMMAND.1 … and FOLDER/completions/fmha (bash; zsh reads it after
bashcompinit). Exit code 1, with the line, for help that this script cannot read."""

import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path


class Unreadable(Exception):
    """Help that does not have the form of CLI11's."""


@dataclass
class Entry:
    """An option, a positional or a subcommand: its names, its values, its description."""
    names: list
    value: str
    text: str

    @property
    def choices(self):
        found = re.search(r"\{([^}]*)\}", self.value)
        return found[1].split(",") if found else []


@dataclass
class Page:
    summary: str
    usage: str
    sections: dict = field(default_factory=dict)  # of entries
    example: list = field(default_factory=list)


def parse(text):
    lines = text.rstrip("\n").split("\n")
    page, at = Page(lines[0], ""), None
    for number, line in enumerate(lines[1:], 2):
        heading = re.fullmatch(r"(Usage|Positionals|Options|Subcommands|Example):(?: (.*))?", line)
        if heading and heading[1] == "Usage":
            page.usage = heading[2]
        elif heading:
            at = heading[1]
            if at != "Example":
                page.sections[at] = []
        elif at == "Example":
            page.example.append(line)
        elif not line.strip():
            continue
        elif at is None:
            raise Unreadable(f"line {number} stands before any section: {line!r}")
        elif line.startswith(" " * 20):
            if not page.sections[at]:
                raise Unreadable(f"line {number} continues nothing: {line!r}")
            entry = page.sections[at][-1]
            entry.text = f"{entry.text} {line.strip()}".strip()
        else:
            page.sections[at].append(entry_of(line, number))
    if not page.usage:
        raise Unreadable("there is no line that begins with Usage:")
    return page


def entry_of(line, number):
    found = re.fullmatch(r"  (\S+)(?: (\S.*?))?(?:(?<!\.\.\.) {2,}| (?<=\.\.\. ) +|$)(.*)", line)
    if not found:
        raise Unreadable(f"line {number} is no entry: {line!r}")
    return Entry(found[1].split(","), found[2] or "", found[3].strip())


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def man_page(name, page, version, others):
    lines = [f'.TH {name.upper()} 1 "" "{version}" "User Commands"', ".ad l", ".SH NAME", f"{roff(name)} \\- {roff(page.summary.rstrip('.'))}",
             ".SH SYNOPSIS", f".B {roff(page.usage)}"]
    for section, entries in page.sections.items():
        lines.append(f".SH {section.upper()}")
        for entry in entries:
            names = ", ".join(f"\\fB{roff(one)}\\fR" for one in entry.names)
            lines += [".TP", f"{names} \\fI{roff(entry.value)}\\fR" if entry.value else names, roff(entry.text) or "\\&"]
    if page.example:
        lines += [".SH EXAMPLE", ".nf", *(roff(line) for line in page.example), ".fi"]
    lines += [".SH EXIT STATUS", "0: all is well; 1: a finding, such as a failed case; 2: input that cannot be used.", ".SH SEE ALSO",
              ", ".join(f"\\fB{roff(other)}\\fR(1)" for other in others)]
    return "\n".join(lines) + "\n"


def completion(pages):
    """One bash function over the options of every subcommand."""
    commands = [name for name in pages if name]
    options = {name: [one for entry in page.sections.get("Options", []) for one in entry.names if one.startswith("--")]
               for name, page in pages.items()}
    choices = {}
    for page in pages.values():
        for entry in page.sections.get("Options", []):
            for one in entry.names:
                if entry.choices:
                    choices.setdefault(one, set()).update(entry.choices)
    lines = ["# Completion of fmha, for bash and, after bashcompinit, for zsh. Made from --help.", "_fmha() {",
             '  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" words=""', "  COMPREPLY=()",
             "  if ((COMP_CWORD == 1)); then", f'    words="{" ".join(commands + options[""])}"', "  else",
             '    case "$before" in']
    lines += [f'    {option}) words="{" ".join(sorted(values))}" ;;' for option, values in sorted(choices.items())]
    lines += ['    *)', '      [[ $word == -* ]] && case "${COMP_WORDS[1]}" in']
    lines += [f'      {name}) words="{" ".join(options[name])}" ;;' for name in commands]
    lines += ["      esac", "      ;;", "    esac", "  fi", '  while IFS= read -r one; do COMPREPLY+=("$one"); done < <(compgen -W "$words" -- "$word")',
              "}", "complete -o default -F _fmha fmha"]
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    fmha, folder = sys.argv[1], Path(sys.argv[2])

    def said(*arguments):
        return subprocess.run([fmha, *arguments], capture_output=True, text=True, check=True).stdout

    try:
        pages = {"": parse(said("--help"))}
        names = [entry.names[0] for entry in pages[""].sections.get("Subcommands", [])]
        if not names:
            raise Unreadable("fmha --help lists no subcommands")
        for name in names:
            pages[name] = parse(said(name, "--help"))
    except Unreadable as error:
        print(f"help_pages.py: {error}", file=sys.stderr)
        return 1
    version = said("--version").strip()
    for part in ("man1", "completions"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    for name, page in pages.items():
        title = f"fmha-{name}" if name else "fmha"
        others = ["fmha"] if name else [f"fmha-{other}" for other in names]
        (folder / "man1" / f"{title}.1").write_text(man_page(title, page, version, others), encoding="utf-8")
    (folder / "completions" / "fmha").write_text(completion(pages), encoding="utf-8")
    print(f"{len(pages)} pages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
