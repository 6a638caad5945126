"""Forward attention of this project beside PyTorch's flash back end, on the same tensors, in one run.

    python3 tests/bench/torch_sdpa.py --library build/host/lib/libfmha.so --kernels FOLDER_OF_FMHA_BUILD

Both sides read the same bf16 tensors (batch, head, row, channel) on one stream. Rounds alternate between them, each round is
timed with events, and medians count. Before it is timed, our output is compared with PyTorch's on every element and with
attention in fp32 on sampled rows. FLOPs are 4·B·H·S²·D, half of it with a causal mask.

Exit code 0: every ratio reaches --minimum and every output is right; 1: not; 2: no library, no kernels, no GPU.
"""

import math
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from torch_bench import (add_mask, argument_parser, bf16_arguments, fmha, head, over_shapes, parsed, run, spread, timed_rounds,  # noqa: E402
                         view, wrong_line)

# batch, heads, rows = keys, head dimension
SHAPES = ((8, 16, 2048, 128), (8, 32, 2048, 64), (1, 16, 16384, 128), (1, 32, 16384, 64))


def exact_rows(torch, q, k, v, b, h, rows, causal):
    """Attention in fp32 of some rows of one head."""
    scores = (q[b, h, rows].float() @ k[b, h].float().T) / math.sqrt(q.shape[3])
    if causal:
        keys = torch.arange(k.shape[2], device=q.device)
        scores.masked_fill_(keys[None, :] > rows[:, None], -math.inf)
    return torch.softmax(scores, -1) @ v[b, h].float()


def wrong(torch, q, k, v, ours, theirs, causal):
    """What is wrong with our output, "" when nothing is. The yardstick is the error of PyTorch's own output against
    fp32 on the sampled rows: ours may have twice that there and, between two outputs that are both off, three times."""
    if not torch.isfinite(ours).all():
        return "it has elements that are not finite"
    batch, heads, length, _ = q.shape
    picked = sorted({0, 1, 63, 64, 127, 128, length // 2, length - 2, length - 1}
                    | set(torch.randint(length, (55,)).tolist()))
    rows = torch.tensor([row for row in picked if 0 <= row < length], device=q.device)
    places = {(0, 0), (batch - 1, heads - 1), (batch // 2, heads // 2), (batch - 1, 0)}
    our_error = their_error = 0.0
    for b, h in places:
        exact = exact_rows(torch, q, k, v, b, h, rows, causal)
        our_error = max(our_error, (ours[b, h, rows].float() - exact).abs().max().item())
        their_error = max(their_error, (theirs[b, h, rows].float() - exact).abs().max().item())
    if our_error > 2 * their_error + 1e-5:
        return f"on sampled rows it is {our_error:.3g} from fp32, PyTorch's is {their_error:.3g}"
    # Every element: one head at a time, so that a long shape needs no second copy of itself in fp32. An element is
    # two roundings of its own size and the errors of P away from PyTorch's.
    for b in range(batch):
        for h in range(heads):
            distance = (ours[b, h].float() - theirs[b, h].float()).abs()
            limit = 3 * their_error + 2.0**-7 * theirs[b, h].float().abs()
            if (distance > limit).any():
                at = (distance - limit).argmax().item()
                row, column = divmod(at, distance.shape[1])
                return (f"b{b} h{h} row {row} column {column}: {ours[b, h, row, column].item():.6g}, "
                        f"PyTorch has {theirs[b, h, row, column].item():.6g}")
    return ""


def measure(torch, context, shape, causal, rounds):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    batch, heads, length, hdim = shape
    torch.manual_seed(20261)
    q, k, v = (torch.randn(shape, device="cuda").to(torch.bfloat16) for _ in range(3))
    o = torch.full_like(q, math.nan)
    args = bf16_arguments(context.lib, fmha.FWD, q, k, v, causal)
    args.q, args.k, args.v, args.o = (view(context.lib, tensor) for tensor in (q, k, v, o))
    stream = torch.cuda.current_stream().cuda_stream

    def ours():
        context.run_on_device(args, stream)

    def theirs():
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    info = context.run_on_device(args, stream, context.lib.fresh("fmha_run_info"))
    expected = theirs()
    torch.cuda.synchronize()
    row = {"batch": batch, "heads": heads, "length": length, "hdim": hdim, "causal": causal,
           "kernel": info.kernel.decode(), "wrong": wrong(torch, q, k, v, o, expected, causal)}
    if row["wrong"]:
        return row
    our_ms, their_ms = timed_rounds(torch, (ours, theirs), rounds)
    flops = 4.0 * batch * heads * length * length * hdim * (0.5 if causal else 1.0)
    row["tflops"] = flops / statistics.median(our_ms) / 1e9
    row["torch_tflops"] = flops / statistics.median(their_ms) / 1e9
    row["ratio"] = row["tflops"] / row["torch_tflops"]
    row["spread_percent"], row["torch_spread_percent"] = spread(our_ms), spread(their_ms)
    return row


def line(row):
    if row["wrong"]:
        return wrong_line(head(row), row)
    return (f"{head(row)} ours {row['tflops']:7.1f} TFLOP/s ±{row['spread_percent']:3.1f} %   PyTorch "
            f"{row['torch_tflops']:7.1f} TFLOP/s ±{row['torch_spread_percent']:3.1f} %   ratio {row['ratio']:5.2f}\n"
            f"    {row['kernel']}")


def main():
    parser = argument_parser(__doc__, "B,H,S,D", SHAPES)
    add_mask(parser)
    chosen = parsed(parser, "B,H,S,D", SHAPES)

    return run(chosen, over_shapes(chosen, measure), line, "PyTorch's flash back end", ())


if __name__ == "__main__":
    sys.exit(main())
