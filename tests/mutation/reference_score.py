#!/usr/bin/env python3
"""reference_score.py PROGRAM TABLE [EVERY]: runs the reference's own tests on every EVERYth mutant of the reference's sources, as many at a time as
there are processors, and prints how many they notice. Ends with 1 when one survives that is not in reference_survivors.txt beside this file."""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

PROGRAM, TABLE = sys.argv[1], pathlib.Path(sys.argv[2])
EVERY = int(sys.argv[3]) if len(sys.argv) > 3 else 1
ROW = re.compile(r'\{(\d+), (-?\d+), "(.*?)", "(.*?)", "(.*)"\},')
# Suites that take seconds come last.
SLOW = "Backward.*:*AttentionOverACache*:*FaultIn*:Oracles.*:Recombination.*:*BackwardFaults*"
SECONDS = 120


def notices(mutant, choice):
    environment = dict(os.environ, FMHA_MUTANT=mutant)
    command = [PROGRAM, "--gtest_brief=1", "--gtest_fail_fast", f"--gtest_filter={choice}"]
    try:
        return subprocess.run(command, env=environment, capture_output=True, timeout=SECONDS, check=False).returncode != 0
    except subprocess.TimeoutExpired:
        return True


def known_survivors():
    lines = (pathlib.Path(__file__).parent / "reference_survivors.txt").read_text().splitlines()
    return {line.split("\t")[0] for line in lines if line and not line.startswith("#")}


def main():
    if notices("-1:0", "-" + SLOW):
        print("the reference's tests are red without a mutant")
        return 1
    rows = [ROW.match(line).groups() for line in TABLE.read_text().splitlines()]
    known, killed, unlisted, tried = known_survivors(), 0, 0, rows[::EVERY]

    def is_killed(row):
        mutant = f"{row[0]}:{row[1]}"
        return notices(mutant, "-" + SLOW) or notices(mutant, SLOW)

    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        for (_, by, source, operation, expression), noticed in zip(tried, threads.map(is_killed, tried)):
            name = f"{source}: {operation} {int(by):+d}: {expression}"
            killed += noticed
            unlisted += not noticed and name not in known
            print(f"{name}: {'killed' if noticed else 'survives' + (' as listed' if name in known else '')}", flush=True)
    print(f"{len(tried)} of {len(rows)} mutants of the reference tried, {killed} killed, {unlisted} survive unlisted")
    return 1 if unlisted else 0


if __name__ == "__main__":
    sys.exit(main())
