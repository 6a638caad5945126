#!/usr/bin/env python3
"""loop_rank.py MANIFEST MEASURED PEAK: is the loop model's order that of measured speeds?

MANIFEST: manifest.json of `fmha build --audit`, with loops. MEASURED: lines "kernel name,TFLOP/s" of long problems that visit
every tile. PEAK: what the matrix unit does when it is always busy, in TFLOP/s (`fmha bench` measures it).
Prints each kernel's bound and speed, the rank correlation (Spearman) and the kernels that are faster than their bound.
Exit code 1 below a correlation of 0.9, for a kernel above its bound, or for fewer than 24 kernels.
"""

import json
import sys

FEWEST = 24
UNITS = ("matrix", "vector", "transcendental", "lds", "memory", "scalar", "branch", "wait")


def bound(loop):
    """built::busy_waiting of the plain iteration."""
    plain = loop["plain"]
    cycles = {unit: plain[unit]["cycles"] for unit in UNITS}
    issue = plain["access_slots"] + sum(cycles[unit] for unit in ("vector", "scalar", "branch", "wait"))
    return cycles["matrix"] / max(max(cycles.values()), max(issue, plain["wave_cycles"]) / max(loop["waves"], 1))


def ranks(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    result = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for position in order[start:end]:
            result[position] = (start + end - 1) / 2  # equal values share the mean of their ranks
        start = end
    return result


def correlation(a, b):
    a, b = ranks(a), ranks(b)
    mean = (len(a) - 1) / 2
    covariance = sum((x - mean) * (y - mean) for x, y in zip(a, b))
    spread = (sum((x - mean) ** 2 for x in a) * sum((y - mean) ** 2 for y in b)) ** 0.5
    return covariance / spread if spread else 0.0


def main(manifest, measured, peak):
    loops = {}
    with open(manifest, encoding="utf-8") as file:
        for entry in json.load(file)["objects"]:
            for kernel in entry["kernels"]:
                if "loop" in kernel.get("resources", {}):
                    loops[kernel["name"]] = kernel["resources"]["loop"]
    rows = []
    with open(measured, encoding="utf-8") as file:
        for line in file:
            name, speed = line.rsplit(",", 1)
            if name not in loops:
                sys.exit(f"{measured}: {name} has no loop in {manifest}")
            rows.append((name, bound(loops[name]), float(speed) / float(peak)))
    for name, most, share in sorted(rows, key=lambda row: row[2]):
        print(f"{most:6.3f} {share:6.3f}{' ABOVE ITS BOUND' if share > most else ''}  {name}")
    rank = correlation([row[1] for row in rows], [row[2] for row in rows])
    above = sum(row[2] > row[1] for row in rows)
    print(f"{len(rows)} kernels, rank correlation {rank:.3f}, {above} above their bound")
    if len(rows) < FEWEST:
        print(f"fewer than {FEWEST} kernels, of which an order says too little")
    return 0 if len(rows) >= FEWEST and rank >= 0.9 and above == 0 else 1


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
