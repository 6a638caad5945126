#!/usr/bin/env python3
"""reference_score.py PROGRAM TABLE [--every N] [--first N] [--record FILE]: runs the reference's own tests on mutants of the reference's sources, as many at a
time as there are processors, and prints how many they notice, per source and operator. --every 7 --first 3 takes the third of seven parts. Ends with 1 when
a mutant survives that reference_survivors.txt beside this file does not list, or one is killed that it calls equivalent."""

import argparse
import collections
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import re
import resource
import subprocess
import sys

ROW = re.compile(r'\{(\d+), (-?\d+), "(.*?)", "(.*?)", "(.*)"\},')
# Suites that take seconds come last.
SLOW = "Backward.*:*AttentionOverACache*:*FaultIn*:Oracles.*:Recombination.*:*BackwardFaults*"
# Of the processor, so that a busy machine kills no mutant; an endless loop ends there.
SECONDS = 120


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("table", type=pathlib.Path)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=1, help="the part that is tried, from 1 on")
    parser.add_argument("--record", type=pathlib.Path, help="write every verdict as JSON")
    parser.add_argument("--survivors", type=pathlib.Path, default=pathlib.Path(__file__).parent / "reference_survivors.txt")
    given = parser.parse_args()
    if given.every < 1 or not 1 <= given.first <= given.every:
        parser.error("--every is 1 or more, and --first is from 1 to that")
    return given


def limit_processor_time():
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def notices(program, mutant, choice):
    environment = dict(os.environ, FMHA_MUTANT=mutant)
    command = [program, "--gtest_brief=1", "--gtest_fail_fast", f"--gtest_filter={choice}"]
    return subprocess.run(command, env=environment, capture_output=True, preexec_fn=limit_processor_time, check=False).returncode != 0


def read_survivors(path):
    """Names or patterns with "equivalent" or "open"."""
    known = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            name, kind, remark = line.split("\t")
            if kind not in ("equivalent", "open") or not remark:
                sys.exit(f"{path}: {name}: a survivor is a name, 'equivalent' or 'open', and a sentence, with tabs between them")
            known[name] = kind
    return known


def kind_of(name, known):
    # "[" is a letter here, as in survivors.txt.
    return known.get(name) or next((kind for pattern, kind in known.items() if fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))), None)


def verdict_of(noticed, kind):
    if noticed:
        return "killed, which the table calls equivalent" if kind == "equivalent" else "killed"
    return kind or "survives unlisted"


def print_score(title, verdicts):
    for what, counts in sorted(verdicts.items()):
        scored = sum(counts.values()) - counts["equivalent"]
        print(f"{title} {what:18} {counts['killed']:4} of {scored:4} killed, {counts['equivalent']:3} equivalent")


def main():
    given = arguments()
    if notices(given.program, "-1:0", "-" + SLOW):
        print("the reference's tests are red without a mutant")
        return 1
    rows = [ROW.match(line).groups() for line in given.table.read_text().splitlines()]
    known, tried = read_survivors(given.survivors), rows[given.first - 1::given.every]

    def is_killed(row):
        mutant = f"{row[0]}:{row[1]}"
        return notices(given.program, mutant, "-" + SLOW) or notices(given.program, mutant, SLOW)

    record, sources, operators, total = [], collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter), collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        for (_, by, source, operator, expression), noticed in zip(tried, threads.map(is_killed, tried)):
            name = f"{source}: {operator} {int(by):+d}: {expression}"
            verdict = verdict_of(noticed, kind_of(name, known))
            for counts in (sources[source], operators[operator], total):
                counts[verdict] += 1
            record.append({"mutant": name, "verdict": verdict})
            if verdict != "killed":
                print(f"{name}: {verdict}", flush=True)
    print_score("source  ", sources)
    print_score("operator", operators)
    if given.record:
        given.record.parent.mkdir(parents=True, exist_ok=True)
        given.record.write_text(json.dumps(record, indent=1) + "\n")
    red = total["survives unlisted"] + total["killed, which the table calls equivalent"]
    print(f"{'RED' if red else 'GREEN'}: {len(tried)} of {len(rows)} mutants of the reference tried, {total['killed']} killed, "
          f"{total['equivalent']} equivalent, {total['open']} open, {red} contradict the table")
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
