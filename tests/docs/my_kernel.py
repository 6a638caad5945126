"""The kernel of README.md: plain attention that loses the last key. Usage: my_kernel.py INPUTS OUTPUTS, folders of .npy files.

Tensors are fp16 and lie batch, head, row, channel; several heads of Q may share a head of K and V.
"""

import ast
import math
import pathlib
import struct
import sys


def load(path):
    """Shape and elements of an fp16 .npy file, in C order."""
    data = path.read_bytes()
    (length,) = struct.unpack_from("<H", data, 8)
    header = ast.literal_eval(data[10:10 + length].decode("latin1"))
    assert header["descr"] == "<f2" and not header["fortran_order"], header
    return header["shape"], struct.unpack_from(f"<{math.prod(header['shape'])}e", data, 10 + length)


def save(path, descr, code, shape, elements):
    header = repr({"descr": descr, "fortran_order": False, "shape": tuple(shape)})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("latin1") +
                     struct.pack(f"<{len(elements)}{code}", *elements))


def rows(shape, elements, head):
    """The rows of one (batch, head)."""
    _, _, count, width = shape
    begin = head * count * width
    return [elements[begin + r * width:begin + (r + 1) * width] for r in range(count)]


def main():
    inputs, outputs = (pathlib.Path(argument) for argument in sys.argv[1:3])
    (shape, q), (shape_k, k), (shape_v, v) = (load(inputs / f"{name}.npy") for name in "qkv")
    scale = 1 / math.sqrt(shape[3])
    o, lse = [], []
    group = shape[1] // shape_k[1]
    for head in range(shape[0] * shape[1]):
        keys, values = rows(shape_k, k, head // group)[:-1], rows(shape_v, v, head // group)[:-1]
        for query in rows(shape, q, head):
            scores = [scale * sum(map(float.__mul__, query, key)) for key in keys]
            top = max(scores)
            weights = [math.exp(score - top) for score in scores]
            total = sum(weights)
            lse.append(top + math.log(total))
            o.extend(sum(map(float.__mul__, weights, column)) / total for column in zip(*values))
    outputs.mkdir(exist_ok=True)
    save(outputs / "o.npy", "<f2", "e", (*shape[:3], shape_v[3]), o)
    save(outputs / "lse.npy", "<f4", "f", shape[:3], lse)


main()
