#!/usr/bin/env python3
"""disks.py FMHA CASES_ROOT: on a read-only disk and on one that is full, each command that writes a file says so in one sentence with the
file's name and ends with 2, and a verdict that was reached is told. Without /proc `fmha generate` writes a build.ninja that nothing
regenerates. All of these are small file systems of a mount namespace of this process; without the right to one it ends with 77."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

FMHA, CASES_ROOT = sys.argv[1], sys.argv[2]
VERIFY = ["verify", "fwd/sink_tokens", "--shard", "1/3", "--jobs", "1", "--cases-root", CASES_ROOT]
GENERATE = ["generate", "--arch", "gfx942", "--covering", "--sample", "20", "--out"]

LIST = ["verify", "--catalogue", "--arch", "gfx950", "--family", "bwd_convert_dq", "--sample", "1", "--jobs", "1"]
GATE = ["gate", "--store", "after.db", "--against", "before.db"]
AUDIT = ["parity", "--rules", "house", "--arch", "gfx1201"]
BUILD = ["build", "--arch", "gfx942", "--covering", "--sample", "6", "--compiler", "bin/clang++-99", "--root", "root", "--cache", "cache"]

# The words of each command, with {} for the folder of the disk, whether its verdict comes before the file is written, and whether the file
# is so small that nothing may be left of the disk.
COMMANDS = [
    ([*VERIFY, "--journal", "{}/run.jsonl"], True, False),
    ([*VERIFY, "--store", "{}/runs.db"], False, False),
    ([*VERIFY, "--json", "{}/run.json"], True, False),
    ([*VERIFY, "--html", "{}/run.html"], True, False),
    ([*LIST, "--ledger", "{}/ledger.tsv"], True, False),
    ([*GENERATE, "{}/kernels"], False, False),
    (["bench", "--shape", "dtype=fp16,seqlen=16", "--seconds", "0.001", "--cases-root", CASES_ROOT, "--store", "{}/bench.db"], False, False),
    (["merge", "shard.json", "--json", "{}/merged.json"], True, False),
    (["merge", "whole.json", "--store", "{}/merged.db"], True, False),
    (["merge", "list.json", "--ledger", "{}/merged.tsv"], True, False),
    ([*GATE, "--html", "{}/gate.html"], True, True),
    ([*GATE, "--json", "{}/gate.json"], True, True),
    ([*AUDIT, "--store", "{}/parity.db"], False, False),
    ([*AUDIT, "--report", "{}/parity"], False, True),
    (["history", "fwd/tiny[hdim=64,seqlen=1,dtype=bf16]", "--store", "before.db", "--html", "{}/course.html"], False, True),
    (["reference", "--case", "fwd/tiny[hdim=64,seqlen=3:3,dtype=fp32]@1", "--cases-root", CASES_ROOT, "--out", "{}/tensors"], False, False),
    ([*BUILD, "--out", "{}/kernels"], False, False),
]
REASONS = {"read-only": "Read-only file system", "full": "No space left on device"}


def inside_namespace():
    if os.environ.get("FMHA_DISKS") == "mounted":
        return True
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode != 0:
        print("NOT RUN: this process may not have a mount namespace of its own")
        sys.exit(77)
    os.environ["FMHA_DISKS"] = "mounted"
    os.execvp("unshare", ["unshare", "-rm", sys.executable, *sys.argv])


def mount(folder, options):
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(folder)], check=True)


def fill(disk):
    with contextlib.suppress(OSError), open(disk / "filler", "wb", buffering=0) as filler:
        while filler.write(b"." * 512):
            pass


def complaint(words, disk, folder, verdict):
    done = subprocess.run([FMHA, *[word.format(disk) for word in words]], cwd=folder, capture_output=True, text=True, timeout=120)
    lines = [line for line in done.stderr.splitlines() if line]
    begin, place = f"fmha {words[0]}: ", words[-1].format(disk)
    wrong = []
    if done.returncode != 2:
        wrong.append(f"ended with {done.returncode}")
    if len(lines) != 1 or not lines[0].startswith(begin) or place not in lines[0] or REASONS[disk] not in lines[0].replace("the disk is full", REASONS["full"]):
        wrong.append(f"said {lines}")
    if disk == "full" and verdict and not any(word in done.stdout for word in ("GREEN", "RED")):
        wrong.append("told no verdict")
    return [f"{disk}: {' '.join(words)}: {', '.join(wrong)}"] if wrong else []


def without_proc(folder):
    """The command cannot find itself then, so no rule may name it."""
    subprocess.run(["mount", "-t", "tmpfs", "none", "/proc"], check=True)
    out = folder / "kernels"
    words = [*BUILD[1:-2], "--out", str(out)]
    done = subprocess.run([FMHA, "generate", *words], cwd=folder, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        return [f"without /proc: generate ended with {done.returncode}: {done.stderr}"]
    text = (out / "build.ninja").read_text()
    return ["without /proc: build.ninja has a rule that nobody can run"] if "rule generate" in text or "rule gfx942" not in text else []


def main():
    inside_namespace()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        mount(folder / "read-only", "size=64k,ro")
        mount(folder / "full", "size=16k")
        (folder / "bin").mkdir()
        shutil.copy(pathlib.Path(__file__).parent.parent / "generator/fake_compiler.sh", folder / "bin/clang++-99")
        (folder / "root/kernels/targets/hip").mkdir(parents=True)
        (folder / "root/kernels/targets/hip/entry.hpp").write_text("#include <cstdint>\n")
        whole = ["verify", "fwd/tiny", "--cases-root", CASES_ROOT]
        for words in ([*VERIFY, "--json", "shard.json"], [*whole, "--json", "whole.json"], [*whole, "--store", "before.db"],
                      [*whole, "--store", "after.db"], [*LIST, "--json", "list.json"]):
            subprocess.run([FMHA, *words], cwd=folder, capture_output=True, check=True, timeout=120)
        wrong = []
        for disk in REASONS:
            for words, verdict, small in COMMANDS:
                if disk == "full" and small:
                    fill(folder / disk)
                wrong += complaint(words, disk, folder, verdict)
                if disk == "full":
                    subprocess.run(["find", str(folder / disk), "-mindepth", "1", "-delete"], check=True)
            subprocess.run(["umount", str(folder / disk)], check=True)
        wrong += without_proc(folder)
        print("\n".join(wrong) if wrong else f"{len(COMMANDS)} commands on a read-only and on a full disk: a sentence each")
        return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
