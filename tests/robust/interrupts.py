#!/usr/bin/env python3
"""interrupts.py FMHA CASES_ROOT MOMENTS [COMMAND...]: sends SIGINT and SIGTERM to each command at MOMENTS random moments. It ends within
FMHA_INTERRUPT_SECONDS (10), is not green, leaves no process behind and no half report. FMHA_KILL_SEED repeats a run."""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

FMHA, CASES_ROOT, MOMENTS, ASKED = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
SEED = int(os.environ.get("FMHA_KILL_SEED", time.time_ns() % 1_000_000))
PATIENCE = float(os.environ.get("FMHA_INTERRUPT_SECONDS", "10"))
RANDOM = random.Random(SEED)
COMPILER = pathlib.Path(CASES_ROOT).parent / "tests/generator/fake_compiler.sh"
COMMANDS = {
    "verify": ["verify", "--tier", "nightly", "--cases-root", CASES_ROOT, "--journal", "run.jsonl", "--json", "report.json"],
    "catalogue": ["verify", "--catalogue", "--json", "report.json"],
    "fuzz": ["fuzz", "--minutes", "0", "--count", "1000000", "--cases-root", CASES_ROOT],
    "bench": ["bench", "--shape", "batch=4,heads=8,seqlen=2048,hdim=128", "--seconds", "30", "--store", "runs.db", "--json", "report.json"],
    "build": ["build", "--arch", "gfx942", "--family", "fwd_splitkv", "--compiler", "./clang++", "--no-cache", "--jobs", "4", "--format", "json"],
}


def left_of(session):
    """The processes of a session that live."""
    left = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            name, fields = stat.read_text().rsplit(")", 1)
        except OSError:
            continue
        state, _, _, its_session = fields.split()[:4]
        if int(its_session) == session and state not in "ZX":
            left.append(name.split("(", 1)[1])
    return left


def interrupted(words, asked, moment, folder):
    """A sentence about what is wrong; None when nothing is, or when the command ended before the signal."""
    process = subprocess.Popen([FMHA, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    try:
        process.wait(moment)
        return None
    except subprocess.TimeoutExpired:
        process.send_signal(asked)
    try:
        code = process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return f"it went on for {PATIENCE:g} s"
    if code not in (1, -asked):
        return f"it ended with {code}"
    end = time.monotonic() + PATIENCE
    while (left := left_of(process.pid)) and time.monotonic() < end:
        time.sleep(0.05)
    if left:
        return f"it left {', '.join(left)} behind"
    report = folder / "report.json"
    if report.exists():
        try:
            json.loads(report.read_text())
        except ValueError:
            return "it left half a report"
    return None


def main():
    wrong = 0
    for name in ASKED or COMMANDS:
        for number in range(MOMENTS):
            for asked in (signal.SIGINT, signal.SIGTERM):
                moment = RANDOM.uniform(0.0, 3.0)
                with tempfile.TemporaryDirectory() as scratch:
                    folder = pathlib.Path(scratch)
                    (folder / "clang++").write_bytes(COMPILER.read_bytes())
                    (folder / "clang++").chmod(0o755)
                    (folder / "slow").write_text("0.5")
                    sentence = interrupted(COMMANDS[name], asked, moment, folder)
                if sentence:
                    wrong += 1
                    print(f"WRONG {name}, {asked.name} after {moment:.2f} s: {sentence}", flush=True)
        print(f"{name}: {2 * MOMENTS} signals", flush=True)
    print(f"{wrong} wrong, seed {SEED}")
    return 1 if wrong else 0


sys.exit(main())
