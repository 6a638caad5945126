#!/usr/bin/env python3
"""The first day on an AMD GPU: checks the machine, builds, tests, verifies, times, compares, and packs what was seen.

    python3 harness/day_one/day_one.py --ck-root ~/composable_kernel --ck-bin ~/composable_kernel/build/bin

Steps run one after the other; each ends in one line, and a step that fails keeps only those from running that need it. Everything
that was printed, measured and judged goes into the folder of --out and from there into one archive. The same command
continues: steps that passed are not repeated, and a run of cases goes on where it stopped. Needs Python 3.8 and nothing else.

Exit code 0: every step passed; 1: some failed or were not run; 2: the command line is wrong.
"""

import argparse
import pathlib
import sys
import tarfile
import time

from run import Failed, Run, WrongFolder
from steps import FAMILIES, steps

LARGEST = 64 << 20  # bytes of a file in the archive


def arguments(given):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("day-one"), help="folder of the run (default: day-one)")
    parser.add_argument("--build", type=pathlib.Path, help="a finished build of this tree; without it the first step builds one")
    parser.add_argument("--ck-root", help="a checkout that was built: its kernels get the tensors that ours get")
    parser.add_argument("--ck-build", help="where it was built (default: build below --ck-root)")
    parser.add_argument("--ck-bin", help="folder with tile_example_fmha_fwd and tile_example_fmha_bwd of a checkout")
    parser.add_argument("--arch", help="architecture (default: the device's)")
    parser.add_argument("--arch-dir", type=pathlib.Path, help="folder of architecture files to use instead of those of the command")
    parser.add_argument("--device", type=int, default=0, help="number of the device")
    parser.add_argument("--tier", choices=("smoke", "full"), default="smoke")
    parser.add_argument("--family", action="append", choices=[api for api, _ in FAMILIES], help="only these (default: all)")
    parser.add_argument("--cases", action="append", default=[], metavar="CASE", help="only these cases of each family")
    parser.add_argument("--only", action="append", default=[], metavar="STEP", help="run these steps and no other")
    parser.add_argument("--again", action="append", default=[], metavar="STEP", help="repeat these steps although they passed")
    parser.add_argument("--list", action="store_true", help="print the steps and run nothing")
    parser.add_argument("--limit", type=float, default=1.0, help="factor on the time limits of steps")
    parser.add_argument("--emulated", action="store_true",
                        help="rehearse: cases run on the emulated machine instead of the GPU, which then need not be there")
    parser.add_argument("--system", type=pathlib.Path, default=pathlib.Path("/"), help=argparse.SUPPRESS)
    chosen = parser.parse_args(given)
    if not 0 < chosen.limit <= 1000:
        parser.error(f"--limit {chosen.limit}: allowed: above 0, to 1000")
    if chosen.device < 0:
        parser.error(f"--device {chosen.device}: allowed: 0 and above")
    if chosen.arch_dir and not chosen.arch_dir.is_dir():
        parser.error(f"--arch-dir {chosen.arch_dir}: there is no such folder")
    if chosen.ck_build and not chosen.ck_root:
        parser.error("--ck-build needs --ck-root")
    return chosen


def pack(run):
    """The folder in one archive; files that are too large are left out and listed."""
    archive = run.folder.parent / f"{run.folder.name}.tar.gz"
    part = archive.with_suffix(".part")
    left_out = []
    with tarfile.open(part, "w:gz", compresslevel=6) as tar:
        for path in sorted(run.folder.rglob("*")):
            if not path.is_file() or path.is_symlink() or "build.ninja" in path.name or path.name.startswith(".ninja"):
                continue
            if path.stat().st_size > LARGEST:
                left_out.append(f"{path.relative_to(run.folder)} ({path.stat().st_size >> 20} MiB)")
                continue
            tar.add(path, arcname=str(pathlib.Path(run.folder.name) / path.relative_to(run.folder)), recursive=False)
    part.replace(archive)
    return archive, left_out


def main(given=None):
    chosen = arguments(given)
    todo = steps(chosen)
    names = [name for name, _, _ in todo]
    for option, values in (("--only", chosen.only), ("--again", chosen.again)):
        for value in values:
            if value not in names:
                print(f"{option} {value}: there is no such step; allowed: {', '.join(names)}", file=sys.stderr)
                return 2
    if chosen.list:
        print("\n".join(names))
        return 0
    try:
        run = Run(chosen)
    except WrongFolder as error:
        print(error, file=sys.stderr)
        return 2
    done = run.state["steps"]
    for name in chosen.again:
        done.pop(name, None)
        (run.folder / f"{name}.jsonl").unlink(missing_ok=True)  # what was judged is judged anew
    counts = {"passed": 0, "failed": 0, "not run": 0}
    try:
        for name, step, needs in todo:
            if chosen.only and name not in chosen.only:
                continue
            before = done.get(name, {})
            if before.get("status") == "passed":
                report(name, "passed", before["sentence"] + " (earlier)")
                counts["passed"] += 1
                continue
            lacking = [need for need in needs if done.get(need, {}).get("status") != "passed"]
            start = time.time()
            if lacking:
                status, sentence = "not run", f"{lacking[0]} did not pass"
            else:
                try:
                    status, sentence = "passed", step(run)
                except Failed as error:
                    status, sentence = "failed", str(error)
                except (OSError, ValueError, AttributeError, LookupError, TypeError) as error:
                    status, sentence = "failed", f"the step itself is wrong or the disk is full: {type(error).__name__}: {error}"
            done[name] = {"status": status, "sentence": sentence, "seconds": round(time.time() - start, 1), "ended": time.strftime("%F %T")}
            run.save()
            counts[status] += 1
            report(name, status, sentence)
    except KeyboardInterrupt:
        print("interrupted; the same command continues", flush=True)
        counts["not run"] += 1
    except OSError as error:  # of run.save(): those of a step are its failure
        print(f"{run.folder} cannot be written any more: {error.strerror}; the same command continues", file=sys.stderr)
        counts["not run"] += 1
    print("   ".join(f"{count} {status}" for status, count in counts.items()))
    try:
        run.save()
        archive, left_out = pack(run)
    except OSError as error:
        print(f"there is no archive of {run.folder}: {error}", file=sys.stderr)
        return 1
    for file in left_out:
        print(f"left out of the archive: {file}")
    print(f"archive {archive}")
    return 0 if counts["failed"] == counts["not run"] == 0 and counts["passed"] else 1


def report(name, status, sentence):
    print(f"{status:8} {name:22} {sentence}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
