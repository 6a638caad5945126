#!/usr/bin/env python3
"""repeats.py FMHA CASES_ROOT RUNS [AT_A_TIME [FILES...]]: runs a case of every case file RUNS times, AT_A_TIME commands at a time (0: one a processor), each in
another order and with another number of processes, and compares outcome, kernel, message and every gate's number. G2 sums over all elements: one that
is a bit higher moves it by more than 1e-6. The reference's own sums depend on the number of its threads, and move it by less than 1e-12.
What a kernel may add up by atomics (W-16) is compared by the gates that judged it and not by their numbers.
FMHA_REPEATS_SEED repeats the orders."""

import concurrent.futures
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

FMHA, CASES_ROOT = sys.argv[1], sys.argv[2]
RUNS = int(sys.argv[3])
PROCESSORS = len(os.sched_getaffinity(0))
AT_A_TIME = int(sys.argv[4]) if len(sys.argv) > 4 else 0
FILES = sys.argv[5:]
SEED = int(os.environ.get("FMHA_REPEATS_SEED", time.time_ns() % 1_000_000))
SAME = 1e-9
ATOMIC_SUMS = ("dq", "d_sink")


def sample():
    """The case in the middle of each case file."""
    done = subprocess.run([FMHA, "verify", *FILES, "--list", "--cases-root", CASES_ROOT], capture_output=True, text=True, check=True)
    files = {}
    for name in done.stdout.splitlines():
        if "@" in name:
            files.setdefault(name.split("[")[0].split("@")[0], []).append(name)
    return [names[len(names) // 2] for names in files.values()]


def told(names, jobs):
    """What a run tells of each case, apart from times."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "run.json"
        words = [FMHA, "verify", *names, "--jobs", str(jobs), "--cases-root", CASES_ROOT, "--json", str(report)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode not in (0, 1) or not report.exists():
            return {f"the run ended with {done.returncode}: {done.stderr.strip()}": []}
        results = {}
        for result in json.loads(report.read_text())["results"]:
            words = [result[key] for key in ("outcome", "kernel", "message", "pattern", "rows", "elements")]
            any_order = "bwd_dq_dk_dv" in result["kernel"] and "deterministic" not in result["kernel"]
            gates = [(gate["gate"], gate["tensor"], 0.0 if any_order and gate["tensor"] in ATOMIC_SUMS else float(gate["ratio"]))
                     for gate in result["gates"]]
            results.setdefault(result["name"], []).append((words, gates))
        return results


def same(before, after):
    """Of one result, twice."""
    return (before[0] == after[0] and len(before[1]) == len(after[1])
            and all(old[:2] == new[:2] and (old[2] == new[2] or abs(old[2] - new[2]) < SAME)
                    for old, new in zip(before[1], after[1])))


def differences(before, after):
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name, []), after.get(name, [])
        if (name in before) != (name in after) or len(old) != len(new) or not all(map(same, old, new)):
            yield f"{name}\n  once  {old}\n  again {new}"


def main():
    names = sample()
    first = told(names, PROCESSORS)
    if len(first) != len(names):
        print(f"{len(names)} cases were asked for, {len(first)} are told:\n{first}")
        return 1
    orders = random.Random(SEED)
    plans = [(orders.sample(names, len(names)), orders.choice((1, 2, 3))) for _ in range(RUNS)]
    flakes, lock = [], threading.Lock()

    def again(plan):
        found = list(differences(first, told(*plan)))
        with lock:
            flakes.extend(found)

    at_a_time, begin = AT_A_TIME or PROCESSORS, time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(at_a_time) as threads:
        list(threads.map(again, plans))
    for flake in flakes[:10]:
        print(flake)
    print(f"{RUNS} runs of {len(names)} cases, a case of every file, {at_a_time} at a time, FMHA_REPEATS_SEED={SEED}: "
          f"{len(flakes)} results differed; {time.monotonic() - begin:.0f} s")
    return 1 if flakes else 0


if __name__ == "__main__":
    sys.exit(main())
