#!/usr/bin/env python3
"""choose_fault.py KERNELS OUT FAULT: a copy of a folder of faulty kernels in which they make the mistake FAULT, or `none`.

A faulty kernel makes the mistake whose number stands in its code object (FaultChoice in kernels/targets/hip/faults.hpp), beside
the names. Exit code 1 when no code object of the folder knows the mistake.
"""
import pathlib
import shutil
import struct
import sys

MARK = b"fmha makes fault"
NAME_BYTES = 32
NONE = 0xFFFFFFFF


def numbers_of(image, place):
    """The known mistakes of the choice at `place`, by name."""
    (count,) = struct.unpack_from("<I", image, place + len(MARK) + 4)
    first = place + len(MARK) + 8
    names = (image[first + n * NAME_BYTES : first + (n + 1) * NAME_BYTES] for n in range(count))
    return {name.rstrip(b"\0").decode(): n for n, name in enumerate(names)}


def choose(image, fault):
    """The code object with the choice made; None when it offers none."""
    place = image.find(MARK)
    if place < 0:
        return None
    if image.find(MARK, place + 1) >= 0:
        raise SystemExit("a code object has two choices")
    numbers = numbers_of(image, place) | {"none": NONE}
    if fault not in numbers:
        return None
    changed = bytearray(image)
    struct.pack_into("<I", changed, place + len(MARK), numbers[fault])
    return bytes(changed)


def main():
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    kernels, out, fault = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    (out / "obj").mkdir(parents=True, exist_ok=True)
    shutil.copy(kernels / "manifest.json", out)
    chosen = 0
    for file in sorted((kernels / "obj").iterdir()):
        if file.suffix not in (".cubin", ".hsaco"):
            continue
        image = file.read_bytes()
        changed = choose(image, fault)
        chosen += changed is not None
        (out / "obj" / file.name).write_bytes(image if changed is None else changed)
    if chosen == 0:
        raise SystemExit(f"{kernels}: no code object makes the mistake {fault}")


main()
