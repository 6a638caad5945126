#!/usr/bin/env python3
"""write_mutants.py SOURCES OUT TABLE HEADER… [--waits HEADER…]: copies headers from below SOURCES to below OUT with a place for each mistake that
the operators below can make there, and lists the places in TABLE, as initialisers of MutantPlace.

The sources are formatted, so an expression is found by its text: binary operators stand between blanks, a statement begins a line.
In headers behind --waits the one operator is a missing wait or barrier. A copy without a planted mistake computes what the original computes."""

import pathlib
import re
import sys

# Members of one type that stand side by side in a structure.
TWINS = [("seqlen_q", "seqlen_k"), ("hdim_q", "hdim_v"), ("nhead_q", "nhead_k"), ("m0", "n0"), ("k0", "k1"),
         ("row_stride", "head_stride"), ("batch_stride", "head_stride"), ("read", "written"), ("begin", "end"),
         ("first", "end"), ("start_q", "start_k"), ("left", "right"), ("x", "y"), ("lower", "upper"), ("sink", "sink_rows"),
         ("seqstart_q", "seqstart_k"), ("scale_s", "scale_o"), ("block_scale_size_q", "block_scale_size_k")]
# Numbers of rows, keys, entries and heads that calls take one after the other.
NUMBERS = "row0|key0|key_row|channel0|b|h|hk|seqlen_q|seqlen_k|sq|sk|row|column|first|end|step|split|item.b|item.h"

KEYWORDS = ("return", "const ", "constexpr", "static", "auto ", "using ", "template", "struct ", "if ", "for ", "else", "while ",
            "break", "continue", "switch", "case ", "default", "namespace", "FMHA_", "friend", "requires", "std::", "float ",
            "double ", "int ", "bool ", "class ", "enum ", "public", "private", "typename", "explicit")


def code_only(text):
    """The code with blanks in place of comments and preprocessor lines, character for character."""
    lines = []
    for line in text.split("\n"):
        hidden = 0 if line.lstrip().startswith("#") else line.find("//")
        hidden = len(line) if hidden < 0 else hidden
        lines.append(line[:hidden] + " " * (len(line) - hidden))
    return "\n".join(lines)


def closing(code, opened):
    """The position of the parenthesis that closes the one at `opened`."""
    depth = 0
    for at in range(opened, len(code)):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        if depth == 0:
            return at
    raise ValueError("no closing parenthesis")


class Header:
    def __init__(self, code):
        self.code = code
        self.found = []  # (operator, position, expression, [(position, text with {n})], deltas)

    def line_at(self, at):
        begin = self.code.rfind("\n", 0, at) + 1
        return self.code[begin:self.code.find("\n", at)]

    def fixed(self, at):
        """Whether the compiler must know the value there."""
        line = self.line_at(at)
        if line.startswith("FMHA_FIELDS"):
            return True
        return bool(re.search(r"static constexpr|constexpr (int|float|auto|bool|std)|static_assert|template|requires|if constexpr|"
                              r"operator|enum |case ", line)) or line.startswith(("struct", "namespace", "inline constexpr"))

    def add(self, operator, at, end, insertions, deltas=(1,)):
        text = " ".join(self.code[at:end].split())
        self.found.append((operator, at, text, insertions, deltas))

    def compare(self):
        for match in re.finditer(r" (<|>|<=|>=|==|!=) (?=[\w(])", self.code):
            right = match.end()
            name = re.match(r"[\w.]+", self.code[right:])
            behind = self.code[right + name.end():] if name else ""
            if self.fixed(right) or behind.startswith("::") or re.match(r"nullptr|true|false", self.code[right:]):
                continue
            begin = max(self.code.rfind(c, 0, match.start()) for c in "({;,&|?:=\n") + 1
            self.add("compare", begin, right + (name.end() if name else 1), [(right, "::fmha::test::by({n}) + ")], (-1, 1))

    def condition(self):
        for match in re.finditer(r"\bif \(", self.code):
            opened = match.end() - 1
            close = closing(self.code, opened)
            inside = self.code[opened + 1:close]
            if ";" in inside or inside.startswith(("const ", "auto ")) or self.code[:match.start()].endswith("constexpr "):
                continue
            self.add("condition", match.start(), close + 1,
                     [(opened + 1, "::fmha::test::on({n}) != static_cast<bool>("), (close, ")")])

    def arithmetic(self):
        for match in re.finditer(r"(?<=[\w)\]]) ([-+*/]) (?=[\w(])", self.code):
            if self.fixed(match.start()):
                continue
            sign = match.group(1)
            begin = max(self.code.rfind(c, 0, match.start()) for c in "({;,&|?:=\n") + 1
            end = match.end() + (re.match(r"[\w.]+", self.code[match.end():]) or re.match(".", self.code[match.end():])).end()
            what = "::fmha::test::by({n})" if sign in "+-" else "::fmha::test::factor({n})"
            self.add("arithmetic", begin, end, [(match.end(), f"{what} {sign} ")], (-1, 1) if sign in "+-" else (1,))

    def constant(self):
        for match in re.finditer(r"(?<=[ (])(\d+\.\d+F|\d+)(?=[,;) ])", self.code):
            before = self.code[:match.start()].rstrip(" ")
            if self.fixed(match.start()) or before[-1:] in "<>-+*/%&|^{!" or before.endswith("=="):
                continue  # next to an operator, `compare` and `arithmetic` change it
            begin = max(self.code.rfind(c, 0, match.start()) for c in ";{}\n") + 1
            self.add("constant", begin, match.end(), [(match.start(), "::fmha::test::by({n}) + ")], (-1, 1))

    def drop(self):
        for match in re.finditer(r"(?<=[ \n])(?=[a-z_])", self.code):
            at = match.end()
            before = self.code[:at].rstrip()
            heads = before.endswith("else") or (before.endswith(")") and self.is_head(before))
            if before[-1:] not in (";", "{", "}") and not heads:
                continue
            if re.search(r"requires\s*(\([^)]*\))?\s*\{$", before):
                continue  # nothing evaluates it
            end = self.code.find(";", at)
            text = self.code[at:end]
            if end < 0 or text.startswith(KEYWORDS) or text.count("(") != text.count(")") or "{" in text or "}" in text:
                continue
            if not re.match(r"[a-z_][\w.:\[\]]*(\(| [-+*/]?= )", text) or self.fixed(at):
                continue
            if re.match(r"[\w.]+\(", text) and "." not in text.split("(")[0] and self.line_at(at).lstrip().startswith(":"):
                continue
            self.add("drop", at, end, [(at, "::fmha::test::on({n}) ? void() : void("), (end, ")")])

    @staticmethod
    def is_head(before):
        """Whether the text ends with the head of an `if` or a `for`, of which a statement is the body."""
        depth, at = 0, len(before)
        while at > 0:
            at -= 1
            depth += {")": 1, "(": -1}.get(before[at], 0)
            if depth == 0:
                break
        return bool(re.search(r"\b(if|if constexpr|for) $", before[:at]))

    def swap(self):
        side = r"[A-Za-z_][\w.]*"
        for match in re.finditer(rf"(?<=[(\s])({side}) - ({side})(?=[;,)])", self.code):
            line = self.line_at(match.start())
            before = self.code[:match.start()].rstrip()
            if self.fixed(match.start()) or before[-1:] in "+-*/%<>" or "return" == match.group(1) or "[" in line:
                continue
            a, b = match.group(1), match.group(2)
            self.add("swap", match.start(), match.end(),
                     [(match.start(), f"(::fmha::test::on({{n}}) ? {b} - {a} : "), (match.end(), ")")])
        for match in re.finditer(rf"(?<=[(,] )?\b({NUMBERS}), ({NUMBERS})(?=[,)])", self.code):
            line = self.line_at(match.start())
            before = self.code[:match.start()]
            if before[-1:] not in "( " or "std::int" in line or "[" in line or before.endswith("&") or self.fixed(match.start()):
                continue
            if re.search(r"(int64_t|int32_t|float|int|auto) $", before):
                continue
            a, b = match.group(1), match.group(2)
            self.add("swap", match.start(), match.end(),
                     [(match.start(), f"(::fmha::test::on({{n}}) ? {b} : "), (match.start(1) + len(a), ")"),
                      (match.start(2), f"(::fmha::test::on({{n}}) ? {a} : "), (match.end(), ")")])

    def member(self):
        for left, right in TWINS:
            for have, other in ((left, right), (right, left)):
                pattern = rf"(?<![\w.\]):>])((?:[A-Za-z_]\w*\.)+){have}\b(?![(\w])"
                for match in re.finditer(pattern, self.code):
                    if self.fixed(match.start()) or "[" in self.line_at(match.start())[:match.start()]:
                        continue
                    if re.match(r" (=|\+=|-=) ", self.code[match.end():]) or match.group(1).startswith("args.quant"):
                        continue
                    yield_object = match.group(1)
                    if not known_twin(yield_object, have, other):
                        continue
                    self.add("member", match.start(), match.end(),
                             [(match.start(), f"(::fmha::test::on({{n}}) ? {yield_object}{other} : "), (match.end(), ")")])

    def wait(self):
        for match in re.finditer(r"(?<=\n)\s*([a-z_][\w.]*\.)?\w*(wait|barrier|arrive|fence|commit)\w*\([^;{}]*\);", self.code):
            at = match.start() + len(match.group(0)) - len(match.group(0).lstrip())
            end = match.end() - 1
            self.add("wait", at, end, [(at, "::fmha::test::on({n}) ? void() : void("), (end, ")")])

    def places(self, waits_alone):
        if waits_alone:
            self.wait()
            return self.found
        for operator in (self.compare, self.condition, self.arithmetic, self.constant, self.drop, self.swap, self.member):
            operator()
        return sorted(self.found, key=lambda place: (place[1], place[0]))


# Which objects have both members; a structure that lacks one does not compile.
OBJECTS = {
    "shape": {"seqlen_q", "seqlen_k", "hdim_q", "hdim_v", "nhead_q", "nhead_k"},
    "signature": {"hdim_q", "hdim_v"}, "has": {"hdim_q", "hdim_v"}, "s": {"hdim_q", "hdim_v"},
    "tile": {"m0", "n0", "k0", "k1"}, "entry": {"seqlen_q", "seqlen_k", "start_q", "start_k"},
    "mask": set(), "rows": {"read", "written"}, "cols": {"read", "written"},
    "tiles": {"begin", "end"}, "visits": {"begin", "end"},
    "tensor": {"row_stride", "head_stride", "batch_stride"}, "view": {"row_stride", "head_stride", "batch_stride"},
}


def known_twin(path, have, other):
    owner = path.rstrip(".").split(".")[-1]
    members = OBJECTS.get(owner, set())
    return have in members and other in members


def main():
    sources, out, table = (pathlib.Path(word) for word in sys.argv[1:4])
    rows, number = [], 0
    waits_alone = False
    for header in sys.argv[4:]:
        if header == "--waits":
            waits_alone = True
            continue
        text = (sources / header).read_text()
        insertions, times = {}, {}
        name = pathlib.Path(header).name
        for operator, _, expression, places, deltas in Header(code_only(text)).places(waits_alone):
            key = (operator, expression)
            times[key] = times.get(key, 0) + 1
            shown = expression + (f" #{times[key]}" if times[key] > 1 else "")
            shown = shown.replace("\\", "\\\\").replace('"', '\\"')
            for delta in deltas:
                rows.append(f'{{{number}, {delta}, "{name}", "{operator}", "{shown}"}},')
            for order, (at, insertion) in enumerate(places):
                insertions.setdefault(at, []).append((insertion.startswith(")"), number, insertion.replace("{n}", str(number))))
            number += 1
        copy, done = ['#include "tests/mutation/planted.hpp"\n'], 0
        for at in sorted(insertions):
            here = insertions[at]
            # What closes an expression stands before what opens the next. What belongs to the operator before comes first, then
            # the outer of two expressions that open here.
            closes = "".join(words for close, _, words in here if close)
            opens = "".join(words for close, _, words in sorted((p for p in here if not p[0]),
                                                               key=lambda p: (p[2].startswith("(") or "::on(" in p[2], -len(p[2]))))
            copy.append(text[done:at] + closes + opens)
            done = at
        target = out / header
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("".join(copy) + text[done:])
    table.write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
