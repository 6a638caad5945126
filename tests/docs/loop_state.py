#!/usr/bin/env python3
"""Compares the numbers of docs/amd_loops.md that follow from kernels/generator/budgets with them: the table of means of *waiting*, how many
forward kernels reach the goals, and how many kernels have a budget.

Usage: loop_state.py --root TREE. Prints what should stand there. Exit code 0: it does, 1: not, or there are no budgets."""

import argparse
import json
import pathlib
import re
import sys

NAME = re.compile(r"(fwd_splitkv|fwd_pagedkv|batch_prefill|bwd_dq_dk_dv|fwd)_gfx[0-9a-f]+_([a-z0-9]+)_(?:batch|group)_h(\d+)x")
HALVES, BYTES = {"fp16", "bf16"}, {"fp8", "bf8", "fp8bf16", "fp8fp32"}
SCALED = {"mxfp8", "mxfp4"}
ROWS = [
    ("forward, 16 bits", "fwd", HALVES),
    ("forward, fp32", "fwd", {"fp32"}),
    ("forward, 8 bits", "fwd", BYTES),
    ("forward, micro-scaled", "fwd", SCALED),
    ("paged-KV, 16 bits", "fwd_pagedkv", HALVES),
    ("paged-KV, fp8", "fwd_pagedkv", BYTES),
    ("split-KV, 16 bits", "fwd_splitkv", HALVES),
    ("split-KV, 8 bits", "fwd_splitkv", BYTES),
    ("batch prefill, 16 bits", "batch_prefill", HALVES),
    ("batch prefill, 8 bits", "batch_prefill", BYTES),
    ("backward, main stage, 16 bits", "bwd_dq_dk_dv", HALVES),
    ("backward, main stage, fp32", "bwd_dq_dk_dv", {"fp32"}),
]


class Kernel:
    """A kernel of a budget; `busy` and `waiting` are thousandths of the time."""

    def __init__(self, name, budget):
        match = NAME.match(name)
        if not match:
            raise SystemExit(f"{name}: neither its family nor its type is known here")
        self.family, self.type, self.channels = match[1], match[2], int(match[3])
        self.busy, self.waiting = budget["busy"], budget["waiting"]


def read_budgets(folder):
    """The kernels of each architecture that has budgets, those of CDNA first."""
    found = {}
    for file in folder.glob("*.json"):
        found[file.stem] = [Kernel(*entry) for entry in json.loads(file.read_text())["kernels"].items()]
    return dict(sorted(found.items(), key=lambda entry: (not entry[0].startswith("gfx9"), entry[0])))


def mean_cell(kernels):
    if not kernels:
        return ""
    # Half a hundredth up, as people round.
    mean = int(sum(kernel.waiting for kernel in kernels) / len(kernels) / 10 + 0.5)
    return f"{mean / 100:.2f} ({len(kernels)})"


def state_rows(archs):
    for title, family, types in ROWS:
        cells = [mean_cell([k for k in kernels if k.family == family and k.type in types]) for kernels in archs.values()]
        yield re.sub(r"  +", " ", f"| {title} | " + " | ".join(cells) + " |")


def goal_starts(archs):
    """How the rows of the goals begin and go on: kernels, then those that reach *together* and *waiting*, half a hundredth below counting."""
    for arch, kernels in archs.items():
        forward = [k for k in kernels if k.family == "fwd" and k.type in HALVES]
        least = [745 if k.channels == 128 and arch in ("gfx942", "gfx950") else 595 for k in forward]
        reached = [sum(getattr(k, bound) >= goal for k, goal in zip(forward, least)) for bound in ("busy", "waiting")]
        yield rf"\| {arch} \| {len(forward)} \| \d+ \| {reached[0]} \| {reached[1]} \|"


def missing_from(page, archs):
    """What should stand on the page and does not."""
    wanted = [f"| | {' | '.join(archs)} |", *state_rows(archs)]
    lines = {re.sub(r"  +", " ", line) for line in page.split("\n")}
    yield from (line for line in wanted if line not in lines)
    yield from (row for row in goal_starts(archs) if not re.search(row, page))
    count = f"{sum(map(len, archs.values())):,} kernels of the [table]"
    if count not in page:
        yield count


def check(root):
    archs = read_budgets(root / "kernels/generator/budgets")
    missing = list(missing_from((root / "docs/amd_loops.md").read_text(), archs))
    for line in missing:
        print(f"docs/amd_loops.md: the budgets have this, the page has not: {line}")
    if not archs:
        print("there are no budgets")
    return 0 if archs and not missing else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    sys.exit(check(parser.parse_args().root))
