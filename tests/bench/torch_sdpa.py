"""Forward attention of this project beside PyTorch's cuDNN and flash back ends, on the same tensors, in one run.

    python3 tests/bench/torch_sdpa.py --library build/host/lib/libfmha.so --kernels FOLDER_OF_FMHA_BUILD

All sides read the same tensors (batch, head, row, channel) on one stream. Rounds alternate between them, each round is timed with
events, and medians count. Before it is timed, our output is compared with the flash back end's on every element and with
attention in fp32 on sampled rows. FLOPs are 4·B·H·S²·D, half of it with a causal mask. The shapes are 16384 rows of 2048 channels, as
entries of 512 to 16384 rows and heads of 64 to 256 channels; and one with four query heads a KV head, causal only, which no mean contains.

Exit code 0: every ratio to cuDNN reaches --minimum, their geometric mean reaches --mean, and every output is right; 1: not; 2: no
library, no kernels, no GPU.
"""

import math
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from torch_bench import (add_mask, argument_parser, attention_arguments, fmha, geometric_mean, head, masks, parsed, run,  # noqa: E402
                         spread, timed_rounds, view, wrong_line, wrong_rows)

# batch, heads, KV heads, rows = keys, head dimension
CHANNELS, ROWS = 2048, 16384
SHAPES = tuple((ROWS // length, CHANNELS // hdim, CHANNELS // hdim, length, hdim) for hdim in (64, 128, 256)
               for length in (512, 2048, 8192, 16384)) + ((4, 32, 8, 4096, 128),)
BACK_ENDS = ("cudnn", "flash")


def measure(torch, context, shape, causal, chosen):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    batch, heads, kv_heads, length, hdim = shape
    torch.manual_seed(20261)
    dtype = torch.float16 if chosen.dtype == "fp16" else torch.bfloat16
    q, k, v = (torch.randn((batch, of, length, hdim), device="cuda").to(dtype) for of in (heads, kv_heads, kv_heads))
    o = torch.full_like(q, math.nan)
    args = attention_arguments(context.lib, fmha.FWD, q, k, v, causal)
    args.q, args.k, args.v, args.o = (view(context.lib, tensor) for tensor in (q, k, v, o))
    stream = torch.cuda.current_stream().cuda_stream

    def ours():
        context.run_on_device(args, stream)

    def theirs(back_end):
        def call():
            with sdpa_kernel(back_end):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=heads != kv_heads)
        return call

    sides = {"cudnn": theirs(SDPBackend.CUDNN_ATTENTION), "flash": theirs(SDPBackend.FLASH_ATTENTION)}
    info = context.run_on_device(args, stream, context.lib.fresh("fmha_run_info"))
    expected = sides["flash"]()
    torch.cuda.synchronize()
    row = {"batch": batch, "heads": heads, "kv_heads": kv_heads, "length": length, "hdim": hdim, "causal": causal,
           "kernel": info.kernel.decode(), "wrong": wrong_rows(torch, q, k, v, o, expected, causal)}
    if row["wrong"]:
        return row
    times = timed_rounds(torch, (ours, *(sides[name] for name in BACK_ENDS)), chosen.rounds)
    flops = 4.0 * batch * heads * length * length * hdim * (0.5 if causal else 1.0)
    for name, milliseconds in zip(("", *(f"{name}_" for name in BACK_ENDS)), times):
        row[name + "tflops"] = flops / statistics.median(milliseconds) / 1e9
        row[name + "spread_percent"] = spread(milliseconds)
    for name in BACK_ENDS:
        row[name + "_ratio"] = row["tflops"] / row[name + "_tflops"]
    row["ratio"] = row["cudnn_ratio"]
    return row


def line(row):
    begin = head(row) + (f"over {row['kv_heads']} KV heads " if row["kv_heads"] != row["heads"] else "")
    if row["wrong"]:
        return wrong_line(begin, row)
    sides = "   ".join(f"{name} {row[key + 'tflops']:6.1f} ±{row[key + 'spread_percent']:3.1f} %"
                       for name, key in (("ours", ""), ("cuDNN", "cudnn_"), ("flash", "flash_")))
    return (f"{begin} TFLOP/s {sides}   ratio {row['cudnn_ratio']:5.3f} to cuDNN, {row['flash_ratio']:5.3f} to flash\n"
            f"    {row['kernel']}")


def means(rows, mean):
    """What `run` wants to know of all rows: geometric means of the ratios, of all shapes without grouped heads and of parts of them."""
    rows = [row for row in rows if row["kv_heads"] == row["heads"]]
    if not rows:
        return {}, [], "no shape without grouped heads"
    parts = {"all": rows}
    for name, of in (("d{}", "hdim"), ("s{}", "length")):
        parts |= {name.format(value): [row for row in rows if row[of] == value] for value in sorted({row[of] for row in rows})}
    parts |= {name: [row for row in rows if row["causal"] == causal] for name, causal in (("plain", False), ("causal", True))}
    facts = {name: {back_end: geometric_mean(row[back_end + "_ratio"] for row in part) for back_end in BACK_ENDS} | {"shapes": len(part)}
             for name, part in parts.items() if part}
    lines = [f"geometric mean of {fact['shapes']:2} ({name}): {fact['cudnn']:5.3f} to cuDNN, {fact['flash']:5.3f} to flash"
             for name, fact in facts.items()]
    reached = facts["all"]["cudnn"]
    return {"means": facts}, lines, f"their mean {reached:.3f} is below {mean}" if reached < mean else ""


def main():
    parser = argument_parser(__doc__, "B,H,KV,S,D", SHAPES, minimum=0.85)
    parser.add_argument("--mean", type=float, default=1.0, help="smallest geometric mean of the ratios to cuDNN")
    parser.add_argument("--dtype", choices=("bf16", "fp16"), default="bf16")
    add_mask(parser)
    chosen = parsed(parser, "B,H,KV,S,D", SHAPES)
    if any(heads % kv_heads for _, heads, kv_heads, _, _ in chosen.shapes):
        parser.error(f"--shape {chosen.shape}: H is no multiple of KV")

    def measured(torch, context, _):
        for shape in chosen.shapes:
            grouped = shape in SHAPES and shape[1] != shape[2]
            for causal in masks(chosen):
                if causal or not grouped:
                    yield measure(torch, context, shape, causal, chosen)
            torch.cuda.empty_cache()

    return run(chosen, measured, line, "PyTorch's cuDNN back end", (), lambda _: ({"dtype": chosen.dtype}, f", {chosen.dtype}"),
               lambda rows: means(rows, chosen.mean))


if __name__ == "__main__":
    sys.exit(main())
