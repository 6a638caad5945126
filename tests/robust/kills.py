#!/usr/bin/env python3
"""kills.py FMHA CASES_ROOT MOMENTS COMMAND...: kills each of the commands (verify, merge, bench, build) at MOMENTS random moments, starts them
again, and looks at what is left: nothing that had finished is lost, nothing is told twice, no file is half written. FMHA_KILL_SEED repeats a run."""

import collections
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

FMHA, CASES_ROOT = sys.argv[1], sys.argv[2]
MOMENTS = int(sys.argv[3])
SEED = int(os.environ.get("FMHA_KILL_SEED", time.time_ns() % 1_000_000))
RANDOM = random.Random(SEED)
CASES = ["fwd/sink_tokens", "--shard", "1/6", "--jobs", "1", "--cases-root", CASES_ROOT]

class Wrong(Exception):
    pass


def require(condition, sentence):
    if not condition:
        raise Wrong(sentence)


def run(words, folder, expected=(0,)):
    done = subprocess.run([FMHA, *words], cwd=folder, capture_output=True, text=True, timeout=300)
    require(done.returncode in expected, f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def killed(words, folder, longest):
    """Whether it was killed before it ended by itself."""
    process = subprocess.Popen([FMHA, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(RANDOM.uniform(0.0, longest))
        return False
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        return True


def seconds_of(work):
    begin = time.monotonic()
    work()
    return time.monotonic() - begin


def sound(file):
    """A connection to a store whose pages SQLite finds in order; None before there is one."""
    if not file.exists() or file.stat().st_size == 0:
        return None
    store = sqlite3.connect(f"file:{file}", uri=True)
    require(store.execute("PRAGMA integrity_check").fetchall() == [("ok",)], f"{file}: SQLite finds a fault")
    return store


def whole_json(file):
    """The content of a report: all of it, or None when there is no file."""
    if not file.exists():
        return None
    try:
        return json.loads(file.read_text())
    except ValueError as error:
        raise Wrong(f"{file}: half a report: {error}") from error


def outcomes(report):
    return collections.Counter((r["name"], r["outcome"]) for r in report["results"])


def journalled(file):
    """The cases that whole lines of a journal tell."""
    lines = file.read_text().split("\n")[:-1] if file.exists() else []
    return [json.loads(line)["case"] for line in lines[1:]]


def stored_names(store):
    query = "SELECT n.text FROM result JOIN word n ON n.id = name"
    return [row[0] for row in store.execute(query)] if store and has_table(store, "result") else []


def has_table(store, name):
    return store.execute("SELECT count(*) FROM sqlite_master WHERE name = ?", (name,)).fetchone()[0] == 1


def each_once(names, what):
    twice = [name for name, count in collections.Counter(names).items() if count > 1]
    require(not twice, f"{what} tells {twice} twice")


def verify(folder):
    words = ["verify", *CASES, "--journal", "run.jsonl", "--store", "runs.db", "--json", "run.json"]
    longest = seconds_of(lambda: run(words, folder))
    right = outcomes(whole_json(folder / "run.json"))
    moments = 0
    while moments < MOMENTS:
        for file in folder.iterdir():
            file.unlink()
        finished = set()
        for _ in range(2):
            moments += killed(words, folder, longest)
            now = journalled(folder / "run.jsonl")
            each_once(now, "the journal")
            require(finished <= set(now), f"the journal lost {finished - set(now)}")
            finished = set(now)
            each_once(stored_names(sound(folder / "runs.db")), "the store")
            whole_json(folder / "run.json")
        run(words, folder)
        require(outcomes(whole_json(folder / "run.json")) == right, "the continued run tells something else")
        require(sorted(stored_names(sound(folder / "runs.db"))) == sorted(name for name, _ in right.elements()),
                "the store has other results than the run")
    return moments


def merge(folder):
    for shard in ("1/2", "2/2"):
        run(["verify", "fwd/sink_tokens", "--shard", shard, "--cases-root", CASES_ROOT, "--json",
             f"{shard[0]}.json"], folder)
    words = ["merge", "1.json", "2.json", "--store", "runs.db", "--json", "run.json", "--junit", "run.xml", "--html", "run.html"]
    longest = seconds_of(lambda: run(words, folder))
    right = outcomes(whole_json(folder / "run.json"))
    moments = 0
    while moments < MOMENTS:
        for name in ("runs.db", "runs.db-wal", "runs.db-shm", "run.json"):
            (folder / name).unlink(missing_ok=True)
        was_killed = killed(words, folder, longest)
        moments += was_killed
        each_once(stored_names(sound(folder / "runs.db")), "the store")
        whole_json(folder / "run.json")
        run(words, folder)
        require(outcomes(whole_json(folder / "run.json")) == right, "the second merge tells something else")
        require(sorted(stored_names(sound(folder / "runs.db"))) == sorted(name for name, _ in right.elements()),
                "the store has other results than the merged run")
    return moments


def bench(folder):
    words = ["bench", "--shape", "dtype=fp16,seqlen=32", "--seconds", "0.001", "--rounds", "2", "--store", "runs.db",
             "--json", "bench.json"]
    longest = seconds_of(lambda: run(words, folder))
    whole = "SELECT count(*) FROM run JOIN time USING (run) WHERE verdict <> ''"
    rows = sound(folder / "runs.db").execute(whole).fetchone()[0]
    require(rows > 0, "the store has no times")
    moments, ended = 0, 1
    while moments < MOMENTS:
        was_killed = killed(words, folder, longest)
        moments += was_killed
        store = sound(folder / "runs.db")
        now = store.execute("SELECT count(*) FROM run WHERE verdict <> ''").fetchone()[0]
        require(now in (ended, ended + 1), f"{now} finished runs after {ended}")
        require(was_killed or now == ended + 1, "a run that ended is not in the store")
        ended = now
        require(store.execute(whole).fetchone()[0] == rows * ended, "a finished run lacks times")
        whole_json(folder / "bench.json")
    return moments


def build(folder):
    (folder / "bin").mkdir()
    compiler = folder / "bin/clang++-99"
    shutil.copy(pathlib.Path(__file__).parent.parent / "generator/fake_compiler.sh", compiler)
    (folder / "bin/slow").write_text("0.05")
    entry = folder / "root/kernels/targets/hip/entry.hpp"
    entry.parent.mkdir(parents=True)
    entry.write_text("#include <cstdint>\n")
    jobs = 2
    words = ["build", "--arch", "gfx942", "--covering", "--sample", "6", "--jobs", str(jobs), "--compiler", str(compiler),
             "--root", str(folder / "root"), "--cache", str(folder / "cache"), "--out", str(folder / "out")]
    compiled = folder / "bin/compiled"
    longest = seconds_of(lambda: run(words, folder))
    kernels = len(compiled.read_text().splitlines())
    require(kernels >= 6, f"{kernels} kernels were compiled")
    moments = 0
    while moments < MOMENTS:
        for name in ("cache", "out"):
            shutil.rmtree(folder / name, ignore_errors=True)
        compiled.unlink()
        kills = 0
        for _ in range(2):
            kills += killed(words, folder, longest)
            whole_json(folder / "out/manifest.json")
        moments += kills
        run(words, folder)
        manifest = whole_json(folder / "out/manifest.json")
        objects = manifest["objects"]
        require(len(objects) == kernels, f"{len(objects)} code objects of {kernels}")
        for built in objects:
            text = (folder / "out" / built["file"]).read_text()
            require(built["kernels"][0]["symbol"] in text, f"{built['file']} is half a code object")
        count = len(compiled.read_text().splitlines()) if compiled.exists() else 0
        require(count <= kernels + kills * jobs, f"{count} compilations of {kernels} kernels after {kills} kills")
    return moments


def main():
    print(f"{MOMENTS} moments each, FMHA_KILL_SEED={SEED}")
    status = 0
    subjects = {"verify": verify, "merge": merge, "bench": bench, "build": build}
    for subject in [subjects[name] for name in sys.argv[4:]]:
        folder = pathlib.Path(tempfile.mkdtemp(prefix=f"fmha-kills-{subject.__name__}-"))
        try:
            print(f"{subject.__name__}: killed {subject(folder)} times, nothing lost, nothing told twice", flush=True)
            shutil.rmtree(folder)
        except Wrong as error:
            print(f"{subject.__name__}: {error}\n  what is left: {folder}", flush=True)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
