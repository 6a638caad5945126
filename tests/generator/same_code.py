#!/usr/bin/env python3
"""same_code.py OLD NEW: compares the kernels in two folders of `fmha build --audit`, instruction by instruction.

Prints one line for every kernel whose code differs, with the bytes of its code and the resources of the audit that changed,
and counts those whose code has the same SHA-256. Exit code 1 when kernels differ, 2 when the folders cannot be compared.
"""
import hashlib
import json
import pathlib
import struct
import sys

CODE, SYMBOLS, FUNCTION = 1, 2, 2


def functions(path):
    """The code of every function in a 64-bit ELF file, by name."""
    data = path.read_bytes()
    offset, = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, offset + i * size) for i in range(count)]
    found = {}
    for section in (s for s in sections if s[1] == SYMBOLS):
        names = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], 24):
            name, info, _, index, value, length = struct.unpack_from("<IBBHQQ", data, at)
            if info & 15 != FUNCTION or length == 0:
                continue
            home = sections[index]
            begin = home[4] + value - home[3]
            text = data[names + name:data.index(b"\0", names + name)].decode()
            found[text] = data[begin:begin + length]
    return found


def kernels(folder):
    """(code, resources) of every kernel in a folder of `fmha build`, by name."""
    folder = pathlib.Path(folder)
    found = {}
    for unit in json.loads((folder / "manifest.json").read_text())["objects"]:
        code = functions(folder / unit["file"])
        for kernel in unit["kernels"]:
            found[kernel["name"]] = code[kernel["symbol"]], kernel.get("resources") or {}
    return found


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        old, new = kernels(sys.argv[1]), kernels(sys.argv[2])
    except (OSError, KeyError, ValueError) as error:
        print(f"same_code.py: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    if not old or old.keys() != new.keys():
        print(f"same_code.py: {len(old.keys() ^ new.keys())} kernels are in one folder only, "
              f"{len(old.keys() & new.keys())} in both", file=sys.stderr)
        return 2
    differing = 0
    for name, (code, before) in sorted(old.items()):
        other, after = new[name]
        if hashlib.sha256(code).digest() == hashlib.sha256(other).digest():
            continue
        differing += 1
        changed = [f"{key} {before[key]} -> {after.get(key)}" for key in before
                   if key not in ("code_bytes", "compile_ms") and before[key] != after.get(key)]
        print(f"{name}: code {len(code)} -> {len(other)} bytes" + "".join(", " + text for text in changed))
    print(f"{len(old)} kernels, {len(old) - differing} with the same code")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
