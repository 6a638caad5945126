"""Prefill over pages of this project beside its own forward and PyTorch's cuDNN and flash back ends, and decode through batch prefill.

    python3 tests/bench/torch_prefill.py --library build/host/lib/libfmha.so --kernels FOLDER_OF_FMHA_BUILD

All sides compute the same attention on the same numbers: forward and PyTorch on keys that lie one after another, paged-KV on pages of
128, batch prefill on packed queries and pages of 1024, 16 and 1, all pages in mixed order. Decode is one query row of 32 query heads
over 8 KV heads of 128 channels: batch prefill over pages of 16 beside split-KV over keys that lie one after another, as CUDA graphs. Rounds
alternate between all sides on one stream, each is timed with events, and medians count. Before anything is timed, each output
is compared with attention in fp32, on sampled rows and with PyTorch's on every element. FLOPs are 4·B·H·S²·D, half of it with a causal mask.

Exit code 0: paged-KV reaches --minimum of forward, decode over pages of 16 reaches --decode of split-KV, and every output is right; 1: not; 2: no
library, no kernels, no GPU. Prefill through batch prefill is measured and has no minimum.
"""

import math
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from torch_bench import (Pages, add_mask, argument_parser, attention_arguments, exact_of_one_row, fmha, graph_of, head, masks, parsed,  # noqa: E402
                         run, spread, timed_rounds, view, wrong_anywhere, wrong_line, wrong_rows)
from torch_decode import CHANNELS, KV_HEADS, QUERY_HEADS, SHAPES as DECODED, Split  # noqa: E402

# batch, heads, KV heads, rows = keys, head dimension
SHAPES = ((8, 32, 8, 2048, 64), (8, 32, 8, 2048, 128), (4, 32, 8, 2048, 256))
PAGED, PREFILLED, DECODED_PAGE = 128, (1024, 16, 1), 16
LINEAR, VLLM_2D = 1, 0  # fmha_kv_layout, fmha_kv_lookup


def arguments():
    parser = argument_parser(__doc__, "B,H,KV,S,D", SHAPES, minimum=0.95)
    parser.add_argument("--decode", type=float, default=0.85, help="smallest ratio of decode over pages of 16 to split-KV")
    parser.add_argument("--part", choices=("both", "prefill", "decode"), default="both")
    add_mask(parser)
    chosen = parsed(parser, "B,H,KV,S,D", SHAPES)
    if any(heads % kv_heads or length % max(PREFILLED) for _, heads, kv_heads, length, _ in chosen.shapes):
        parser.error(f"--shape {chosen.shape}: H is no multiple of KV, or S none of {max(PREFILLED)}")
    return chosen


def packed(tensor):
    """(batch, head, row, channel) as packed rows (batch · row, head, channel)."""
    batch, heads, rows, channels = tensor.shape
    return tensor.transpose(1, 2).reshape(batch * rows, heads, channels).contiguous()


class Call:
    """A call of one API that owns what it points to; `pages`: where K and V lie, None = one after another."""

    def __init__(self, torch, context, api, q, k, v, causal=False, pages=None):
        lib = context.lib
        self.context, self.shape = context, q.shape
        args = self.args = attention_arguments(lib, api, q, k, v, causal)
        self.in_rows = api == fmha.BATCH_PREFILL
        if pages:
            self.pages, k, v = pages, pages.k, pages.v
            pages.place(args)
        if self.in_rows:
            args.shape.mode = fmha.GROUP
            args.place.kv_layout, args.place.kv_lookup = LINEAR, VLLM_2D
            self.starts = torch.arange(0, (q.shape[0] + 1) * q.shape[2], q.shape[2], dtype=torch.int32, device=q.device)
            args.lengths.seqstart_q = self.starts.data_ptr()
            q = packed(q)
        self.q, self.k, self.v, self.stored = q, k, v, torch.full_like(q, math.nan)
        args.k, args.v = view(lib, k), view(lib, v)
        for name, tensor in (("q", q), ("o", self.stored)):
            rows = lib.tensor(tensor.data_ptr(), 0, tensor.stride(1), tensor.stride(0), 1) if self.in_rows else view(lib, tensor)
            setattr(args, name, rows)
        info = context.run_on_device(args, torch.cuda.current_stream().cuda_stream, lib.fresh("fmha_run_info"))
        self.kernel = info.kernel.decode()

    @property
    def o(self):
        """The output as (batch, head, row, channel)."""
        if not self.in_rows:
            return self.stored
        batch, heads, rows, channels = self.shape
        return self.stored.reshape(batch, rows, heads, channels).transpose(1, 2)

    def __call__(self, torch):
        self.context.run_on_device(self.args, torch.cuda.current_stream().cuda_stream)


def back_end(torch, name, q, k, v, causal):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    chosen = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}[name]

    def call():
        with sdpa_kernel(chosen):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1])
    return call


def numbers(torch, batch, heads, rows, channels):
    return torch.randn((batch, heads, rows, channels), device="cuda").to(torch.bfloat16)


def ratios(row, name, speeds, of_speed):
    """Adds the speed of side `name` to a row, and those of the others with the ratios to them; `of_speed` is the speeds' unit."""
    row[of_speed] = speeds[name]
    for other, speed in speeds.items():
        if other in ("forward", "split-KV", "cudnn", "flash"):
            row |= {f"{other}_{of_speed}": speed, f"{other}_ratio": speeds[name] / speed}
    return row


def prefill(torch, context, shape, causal, rounds):
    """One row a side that reads pages, and one of forward itself if that is wrong."""
    batch, heads, kv_heads, length, hdim = shape
    torch.manual_seed(20261)
    q, k, v = (numbers(torch, batch, of, length, hdim) for of in (heads, kv_heads, kv_heads))
    sides = {"forward": Call(torch, context, fmha.FWD, q, k, v, causal),
             f"paged-KV {PAGED}": Call(torch, context, fmha.FWD_PAGEDKV, q, k, v, causal, Pages(torch, k, v, PAGED))}
    for size in PREFILLED:
        sides[f"batch prefill {size}"] = Call(torch, context, fmha.BATCH_PREFILL, q, k, v, causal, Pages(torch, k, v, size))
    theirs = {name: back_end(torch, name, q, k, v, causal) for name in ("cudnn", "flash")}
    expected = theirs["flash"]()
    torch.cuda.synchronize()
    rows = [{"work": "prefill", "batch": batch, "heads": heads, "kv_heads": kv_heads, "length": length, "hdim": hdim, "causal": causal,
             "side": name, "kernel": side.kernel, "wrong": wrong_rows(torch, q, k, v, side.o, expected, causal)} for name, side in sides.items()]
    if any(row["wrong"] for row in rows):
        return [row for row in rows if row["wrong"]]
    times = timed_rounds(torch, [lambda side=side: side(torch) for side in sides.values()] + list(theirs.values()), rounds)
    flops = 4.0 * batch * heads * length * length * hdim * (0.5 if causal else 1.0)
    speeds = {name: flops / statistics.median(side) / 1e9 for name, side in zip((*sides, *theirs), times)}
    for row, milliseconds in zip(rows, times):
        ratios(row, row["side"], speeds, "tflops")
        row |= {"spread_percent": spread(milliseconds), "ratio": row["forward_ratio"]}
        if row["side"].startswith("batch prefill"):
            row["minimum"] = 0.0
    return rows[1:]


def decode(torch, context, shape, minimum, rounds):
    batch, keys = shape
    torch.manual_seed(20261)
    q, k, v = numbers(torch, batch, QUERY_HEADS, 1, CHANNELS), *(numbers(torch, batch, KV_HEADS, keys, CHANNELS) for _ in range(2))
    name = f"batch prefill {DECODED_PAGE}"
    sides = {"split-KV": Split(torch, context, q, k, v, 0),
             name: Call(torch, context, fmha.BATCH_PREFILL, q, k, v, False, Pages(torch, k, v, DECODED_PAGE))}
    theirs = back_end(torch, "cudnn", q, k, v, False)
    expected, answer = exact_of_one_row(torch, q, k, v), theirs()
    torch.cuda.synchronize()
    rows = [{"work": "decode", "batch": batch, "keys": keys, "side": side_name, "kernel": side.kernel, "minimum": minimum,
             "wrong": wrong_anywhere(torch, side.o, answer, expected)} for side_name, side in sides.items()]
    if any(row["wrong"] for row in rows):
        return [row for row in rows if row["wrong"]]
    launches = max(1, min(64, 8 * 32768 // (batch * keys)))
    calls = [graph_of(torch, call, launches) for call in (*(lambda side=side: side(torch) for side in sides.values()), theirs)]
    times = [[t / launches for t in side] for side in timed_rounds(torch, calls, rounds)]
    moved = 2.0 * 2 * batch * KV_HEADS * keys * CHANNELS
    speeds = {side: moved / statistics.median(milliseconds) / 1e6 for side, milliseconds in zip((*sides, "cudnn"), times)}
    row = ratios(rows[1], name, speeds, "gbytes")
    return [row | {"spread_percent": spread(times[1]), "ratio": row["split-KV_ratio"]}]


def line(row):
    prefilled = row["work"] == "prefill"
    begin = (head(row) + f"over {row['kv_heads']} KV heads " if prefilled else "decode b{batch:<4} keys {keys:<6} ".format(**row)) + f"{row['side']:17}"
    if row["wrong"]:
        return wrong_line(begin, row)
    unit, text, sides = ("tflops", "TFLOP/s", ("forward", "cudnn", "flash")) if prefilled else ("gbytes", "GB/s", ("split-KV", "cudnn"))
    others = "   ".join(f"{row[f'{side}_ratio']:5.3f} of {side} ({row[f'{side}_{unit}']:.0f})" for side in sides)
    return f"{begin} {row[unit]:6.0f} {text} ±{row['spread_percent']:3.1f} %   {others}\n    {row['kernel']}"


def main():
    chosen = arguments()

    def measured(torch, context, _):
        for shape in chosen.shapes if chosen.part != "decode" else ():
            for causal in masks(chosen):
                yield from prefill(torch, context, shape, causal, chosen.rounds)
                torch.cuda.empty_cache()
        for shape in DECODED if chosen.part != "prefill" else ():
            yield from decode(torch, context, shape, chosen.decode, chosen.rounds)
            torch.cuda.empty_cache()

    return run(chosen, measured, line, f"our forward, or below {chosen.decode} of our split-KV", ())


if __name__ == "__main__":
    sys.exit(main())
