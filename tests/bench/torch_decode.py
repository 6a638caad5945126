"""Decode of this project beside PyTorch's cuDNN back end, on the same numbers, in one run.

    python3 tests/bench/torch_decode.py --library build/host/lib/libfmha.so --kernels FOLDER_OF_FMHA_BUILD

One query row of 32 query heads over 8 KV heads of 128 channels in bf16, without a mask. Ours is split-KV with the number of
splits that the plan chooses (S-6), once over K and V that lie one after another and once over pages in mixed order; PyTorch
reads the keys one after another. Rounds alternate between all sides on one stream, each round is a CUDA graph of many launches
(--eager launches them one by one, with the costs of the processor), is timed with events, and medians count. Before it is
timed, each of our outputs is compared with attention in fp32 on every element. Bytes are those of K and V; the ceiling is a
copy of 2 GiB in the same run, whose bytes count twice.

Exit code 0: every ratio reaches --minimum and every output is right; 1: not; 2: no library, no kernels, no GPU.
"""

import math
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from torch_bench import (Pages, argument_parser, attention_arguments, exact_of_one_row, fmha, graph_of, parsed, run,  # noqa: E402
                         spread, timed_rounds, view, wrong_anywhere, wrong_line)

QUERY_HEADS, KV_HEADS, CHANNELS = 32, 8, 128
SHAPES = ((1, 32768), (8, 8192), (64, 8192), (128, 2048))  # batch, keys


def arguments():
    parser = argument_parser(__doc__, "B,KEYS", SHAPES, minimum=0.9)
    parser.add_argument("--page-size", type=int, default=128, help="keys a page, a multiple of 128 that divides the keys")
    parser.add_argument("--splits", type=int, default=0, help="number of splits; 0: the plan chooses")
    parser.add_argument("--eager", action="store_true", help="launch one by one, not as a graph")
    chosen = parsed(parser, "B,KEYS", SHAPES)
    if not 0 <= chosen.splits <= 128:
        parser.error(f"--splits {chosen.splits}: 0 to 128")
    page = chosen.page_size
    if page < 128 or page % 128 or any(keys % page for _, keys in chosen.shapes):
        parser.error(f"--page-size {page}: a multiple of 128 that divides the number of keys")
    return chosen


class Split:
    """A call of split-KV that owns what it points to."""

    def __init__(self, torch, context, q, k, v, splits, page_size=0):
        lib = context.lib
        self.context, self.o = context, torch.full_like(q, math.nan)
        args = self.args = attention_arguments(lib, fmha.FWD_SPLITKV, q, k, v)
        args.num_splits = splits
        if page_size:
            pages = Pages(torch, k, v, page_size)
            pages.place(args)
            self.pages, k, v = pages, pages.k, pages.v
        self.k, self.v = k, v
        args.q, args.k, args.v, args.o = (view(lib, tensor) for tensor in (q, k, v, self.o))
        size = context.workspace_size(args)
        size = size[0] if isinstance(size, tuple) else size
        self.workspace = torch.empty(max(size, 16), dtype=torch.uint8, device=q.device)
        args.workspace = self.workspace.data_ptr()
        info = context.run_on_device(args, torch.cuda.current_stream().cuda_stream, lib.fresh("fmha_run_info"))
        self.kernel = info.kernel.decode()

    def __call__(self, torch):
        self.context.run_on_device(self.args, torch.cuda.current_stream().cuda_stream)


def copy_rate(torch):
    """Bytes read and written a second by the fastest of some copies of 2 GiB."""
    source = torch.empty(1 << 31, dtype=torch.uint8, device="cuda").fill_(1)
    target = torch.empty_like(source)
    best = math.inf
    for _ in range(8):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        target.copy_(source)
        stop.record()
        stop.synchronize()
        best = min(best, start.elapsed_time(stop))
    return 2 * source.numel() / best * 1e3


def measure(torch, context, shape, chosen, ceiling):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    batch, keys = shape
    torch.manual_seed(20261)
    q = torch.randn((batch, QUERY_HEADS, 1, CHANNELS), device="cuda").to(torch.bfloat16)
    k, v = (torch.randn((batch, KV_HEADS, keys, CHANNELS), device="cuda").to(torch.bfloat16) for _ in range(2))
    sides = {"contiguous": Split(torch, context, q, k, v, chosen.splits),
             f"pages of {chosen.page_size}": Split(torch, context, q, k, v, chosen.splits, chosen.page_size)}

    def theirs():
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)

    expected, answer = exact_of_one_row(torch, q, k, v), theirs()
    torch.cuda.synchronize()
    rows = [{"batch": batch, "keys": keys, "cache": name, "kernel": side.kernel,
             "wrong": wrong_anywhere(torch, side.o, answer, expected)} for name, side in sides.items()]
    if any(row["wrong"] for row in rows):
        return rows
    calls = [lambda side=side: side(torch) for side in sides.values()] + [theirs]
    launches = 1
    if not chosen.eager:
        launches = max(1, min(64, 8 * 32768 // (batch * keys)))
        calls = [graph_of(torch, call, launches) for call in calls]
    times = [[t / launches for t in side] for side in timed_rounds(torch, calls, chosen.rounds)]
    moved = 2.0 * 2 * batch * KV_HEADS * keys * CHANNELS
    rate = [moved / statistics.median(side) / 1e6 for side in times]
    for n, row in enumerate(rows):
        row |= {"microseconds": statistics.median(times[n]) * 1e3, "gbytes": rate[n], "torch_gbytes": rate[-1],
                "torch_microseconds": statistics.median(times[-1]) * 1e3, "ratio": rate[n] / rate[-1],
                "share_of_copy": rate[n] * 1e9 / ceiling, "spread_percent": spread(times[n]),
                "torch_spread_percent": spread(times[-1])}
    return rows


def line(row):
    begin = "b{batch:<4} keys {keys:<6} {cache:13}".format(**row)
    if row["wrong"]:
        return wrong_line(begin, row)
    return (f"{begin} ours {row['microseconds']:7.1f} us {row['gbytes']:6.0f} GB/s ±{row['spread_percent']:3.1f} %   cuDNN "
            f"{row['torch_microseconds']:7.1f} us {row['torch_gbytes']:6.0f} GB/s ±{row['torch_spread_percent']:3.1f} %   ratio "
            f"{row['ratio']:5.2f}   {row['share_of_copy']:5.2f} of a copy\n    {row['kernel']}")


def main():
    chosen = arguments()

    def prepare(torch):
        ceiling = copy_rate(torch)
        return {"copy_gbytes": ceiling / 1e9, "graph": not chosen.eager}, f", a copy moves {ceiling / 1e9:.0f} GB/s"

    def measured(torch, context, facts):
        for shape in chosen.shapes:
            yield from measure(torch, context, shape, chosen, facts["copy_gbytes"] * 1e9)
            torch.cuda.empty_cache()

    return run(chosen, measured, line, "PyTorch's cuDNN back end", (), prepare)


if __name__ == "__main__":
    sys.exit(main())
