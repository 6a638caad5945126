#!/usr/bin/env python3
"""reruns.py FMHA CASES_ROOT RERUNS [AT_A_TIME]: measures the same program twice, in turns, into two stores, and asks `fmha gate` whether something got
worse: RERUNS times, AT_A_TIME (default 1) beside one another, on a machine that other work keeps busy at random. Nothing may."""

import concurrent.futures
import multiprocessing
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

FMHA, CASES_ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
RERUNS = int(sys.argv[3])
AT_A_TIME = int(sys.argv[4]) if len(sys.argv) > 4 else 1
SEEDS, PAIRS = 3, 3
CASES = ["fwd/sink_tokens", "fwd/tiny", "bwd/tiny", "--shard", "1/4"]
SHAPES = ["--shape", "dtype=fp16,heads=2,seqlen=64,hdim=64", "--shape", "dtype=bf16,heads=1,seqlen=96,hdim=64,mask=t"]


def burn(seed):
    """Busy and idle by turns, for some hundredths to some tenths of a second each."""
    lengths = random.Random(seed)
    while True:
        end = time.monotonic() + lengths.uniform(0.01, 0.4)
        while time.monotonic() < end:
            pass
        time.sleep(lengths.uniform(0.01, 0.4))


def run(words, folder, expected=(0,)):
    done = subprocess.run([FMHA, *words], cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode not in expected:
        raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done


def alarm(_):
    """What the gate said, if it was not green."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for seed in range(SEEDS):
            for store in ("old.db", "new.db"):
                run(["verify", *CASES, "--jobs", "1", "--seed", str(seed), "--cases-root", CASES_ROOT, "--store", store], folder)
        for _ in range(PAIRS):
            for store in ("old.db", "new.db"):
                run(["bench", *SHAPES, "--seconds", "0.02", "--cases-root", CASES_ROOT, "--store", store], folder)
        verdict = run(["gate", "--store", "new.db", "--against", "old.db"], folder, (0, 1))
        return None if verdict.returncode == 0 else verdict.stdout or "the gate was red and said nothing"


def main():
    load = [multiprocessing.Process(target=burn, args=(n,), daemon=True) for n in range(len(os.sched_getaffinity(0)))]
    for process in load:
        process.start()
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as threads:
        alarms = [said for said in threads.map(alarm, range(RERUNS)) if said]
    for process in load:
        process.terminate()
    for said in alarms[:5]:
        print(said)
    print(f"{RERUNS} reruns of the same program, {len(load)} processes of other work: {len(alarms)} alarms; {time.monotonic() - begin:.0f} s")
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main())
