"""What a cache costs the host target: split-KV in n splits beside one, batch prefill beside forward.

    python3 tests/bench/host_cache.py --library build/host/lib/libfmha.so

Each side runs in alternating rounds; the processor time of the whole process counts, so that other programs on the machine disturb
little, and the fastest round of a side is its time. fp16, kernels of gfx950.

Exit code 0: splits cost at most 1.1 of one and batch prefill at most 1.25 of forward; 1: not; 2: no library.
"""

import argparse
import ctypes
import pathlib
import random
import sys
import time
from array import array

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "dispatcher" / "python"))
import fmha  # noqa: E402, from this source tree

MOST_OF_SPLITS, MOST_OF_PREFILL = 1.1, 1.25


def memory(count):
    """fp16 numbers of magnitude 1/8 to 1, as an array of their codes."""
    generator = random.Random(20261)
    period = array("H", (generator.randrange(0x3000, 0x3C00) | generator.getrandbits(1) << 15 for _ in range(4099)))
    return period * (count // len(period) + 1)


class Call:
    """A problem of `batch` entries with the arrays that it points to."""

    def __init__(self, lib, api, batch, heads, rows, keys, channels, group):
        self.args = args = lib.arguments(api)
        self.lib, self.kept = lib, []
        shape = args.shape
        shape.data_type = fmha.FP16
        shape.batch, shape.nhead_q, shape.nhead_k = batch, heads, heads
        shape.seqlen_q = shape.max_seqlen_q = rows
        shape.seqlen_k = shape.max_seqlen_k = keys
        shape.hdim_q = shape.hdim_v = channels
        args.mask.window_left = args.mask.window_right = -1
        self.heads, self.channels, self.group = heads, channels, group
        args.q, args.o = (self.tensor(batch, rows) for _ in range(2))
        if group:
            shape.mode = fmha.GROUP
            args.lengths.seqstart_q = self.numbers(range(0, (batch + 1) * rows, rows))

    def address(self, data):
        self.kept.append(data)
        return data.buffer_info()[0]

    def numbers(self, values):
        return self.address(array("i", values))

    def tensor(self, batch, length):
        """Rows of all heads one after another; packed sequences share them."""
        row = self.heads * self.channels
        where = self.address(memory(batch * length * row))
        return self.lib.tensor(where, 0 if self.group else length * row, self.channels, row, 1)

    def workspace(self, context):
        size = context.workspace_size(self.args)[0]
        self.args.workspace = self.address(array("B", bytes(max(size, 16) + 256)))
        return self


def splits_of(context, counts, rows, keys):
    """One problem in several numbers of splits, over the same keys: which pages of memory they lie in matters as much as splits."""
    calls = []
    for splits in counts:
        call = Call(context.lib, fmha.FWD_SPLITKV, 1, 4, rows, keys, 64, False)
        call.args.q = calls[0].args.q if calls else call.args.q
        call.args.k, call.args.v = (calls[0].args.k, calls[0].args.v) if calls else (call.tensor(1, keys), call.tensor(1, keys))
        call.args.num_splits = splits
        calls.append(call.workspace(context))
    return calls


def forward(context, batch, rows):
    call = Call(context.lib, fmha.FWD, batch, 4, rows, rows, 128, True)
    call.args.k, call.args.v = call.tensor(batch, rows), call.tensor(batch, rows)
    call.args.lengths.seqstart_k = call.args.lengths.seqstart_q
    return call


def prefill(context, batch, rows, page_size):
    call = Call(context.lib, fmha.BATCH_PREFILL, batch, 4, rows, rows, 128, True)
    pages = batch * rows // page_size
    order = list(range(pages))
    random.Random(5).shuffle(order)
    row = 4 * 128
    call.args.k, call.args.v = (call.lib.tensor(call.address(memory(pages * page_size * row)), page_size * row, 128, row, 1) for _ in range(2))
    place = call.args.place
    place.block_table, place.block_table_stride = call.numbers(order), rows // page_size
    place.page_size, place.page_count = page_size, pages
    place.kv_layout, place.kv_lookup = 1, 0  # FMHA_KV_LINEAR, FMHA_KV_VLLM_2D
    call.args.lengths.seqlen_k = call.numbers([rows] * batch)
    return call


def fastest(context, calls, rounds):
    """Seconds of processor time of each call."""
    best = [float("inf")] * len(calls)
    for n in range(rounds + 1):
        for i, call in enumerate(calls):
            start = time.process_time()
            context.run_on_host(call.args)
            if n > 0:  # the first round touches memory and chooses kernels
                best[i] = min(best[i], time.process_time() - start)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True, help="libfmha.so")
    parser.add_argument("--rounds", type=int, default=9, help="timed rounds of each side")
    chosen = parser.parse_args()
    slow = 0
    try:
        lib = fmha.load(chosen.library)
        with fmha.Context(lib, arch="gfx950") as context:
            series = [(f"split-KV, {rows} rows, {keys} keys", ["1 split"] + [f"{n} splits" for n in counts],
                       splits_of(context, (1, *counts), rows, keys), MOST_OF_SPLITS)
                      for rows, keys, counts in ((64, 4096, (4, 16)), (64, 32768, (2, 8, 32)), (1, 32768, (8, 57)))]
            series.append(("batch prefill, 2 x 512 rows and keys", ["forward", "pages of 16", "pages of 1"],
                           [forward(context, 2, 512)] + [prefill(context, 2, 512, size) for size in (16, 1)], MOST_OF_PREFILL))
            for about, names, calls, most in series:
                times = fastest(context, calls, chosen.rounds)
                print(f"{about}: {names[0]} {times[0] * 1e3:.1f} ms")
                for name, seconds in zip(names[1:], times[1:]):
                    ratio = seconds / times[0]
                    slow += ratio > most
                    print(f"    {name:12} {seconds * 1e3:7.1f} ms   ratio {ratio:5.2f}   at most {most}", flush=True)
    except (OSError, fmha.Error) as error:
        print(f"{chosen.library}: {error}", file=sys.stderr)
        return 2
    print("every ratio is within its limit" if slow == 0 else f"{slow} ratios are above their limit")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
