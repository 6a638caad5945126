"""Forward attention of this project beside PyTorch's flash back end, on the same tensors, in one run.

    python3 tests/bench/torch_sdpa.py --library build/host/lib/libfmha.so --kernels FOLDER_OF_FMHA_BUILD

Both sides read the same bf16 tensors (batch, head, row, channel) on one stream. Rounds alternate between them, each round is
timed with events, and medians count. Before it is timed, our output is compared with PyTorch's on every element and with
attention in fp32 on sampled rows. FLOPs are 4·B·H·S²·D, half of it with a causal mask.

Exit code 0: every ratio reaches --minimum and every output is right; 1: not; 2: no library, no kernels, no GPU.
"""

import argparse
import json
import math
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "dispatcher" / "python"))
import fmha  # noqa: E402, from this source tree

# batch, heads, rows = keys, head dimension
SHAPES = ((8, 16, 2048, 128), (8, 32, 2048, 64), (1, 16, 16384, 128), (1, 32, 16384, 64))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True, help="libfmha.so")
    parser.add_argument("--kernels", required=True, help="folder that `fmha build` filled")
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--minimum", type=float, default=0.8, help="smallest ratio of our speed to PyTorch's")
    parser.add_argument("--rounds", type=int, default=40, help="timed rounds of each side")
    parser.add_argument("--shape", action="append", metavar="B,H,S,D", help="instead of the four standard shapes")
    parser.add_argument("--mask", choices=("both", "none", "causal"), default="both")
    parser.add_argument("--json", help="file for the numbers")
    chosen = parser.parse_args()
    if chosen.rounds < 1:
        parser.error(f"--rounds {chosen.rounds}: at least 1")
    try:
        chosen.shapes = [tuple(int(n) for n in text.split(",")) for text in chosen.shape or ()] or list(SHAPES)
    except ValueError:
        parser.error(f"--shape {chosen.shape}: four integers B,H,S,D")
    if any(len(shape) != 4 or min(shape) < 1 for shape in chosen.shapes):
        parser.error(f"--shape {chosen.shape}: four positive integers B,H,S,D")
    return chosen


def view(lib, tensor):
    """A torch tensor (batch, head, row, channel) as the library takes it: its memory and strides in elements."""
    return lib.tensor(tensor.data_ptr(), *tensor.stride())


def call(lib, q, k, v, o, causal):
    """The arguments of our side; bottom-right and top-left are one mask where there are as many rows as keys."""
    args = lib.arguments(fmha.FWD)
    args.shape.data_type = fmha.BF16
    args.shape.batch, args.shape.nhead_q, args.shape.seqlen_q, args.shape.hdim_q = q.shape
    args.shape.nhead_k, args.shape.seqlen_k, args.shape.hdim_v = k.shape[1], k.shape[2], v.shape[3]
    args.shape.max_seqlen_q, args.shape.max_seqlen_k = args.shape.seqlen_q, args.shape.seqlen_k
    args.mask.window_left = -1
    args.mask.window_right = 0 if causal else -1
    args.mask.type = fmha.TOP_LEFT if causal else fmha.NO_MASK
    args.q, args.k, args.v, args.o = (view(lib, tensor) for tensor in (q, k, v, o))
    return args


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


def timed_rounds(torch, sides, rounds):
    """Milliseconds of each side in alternating rounds, so that clocks and heat are the same for both."""
    inner = []
    for side in sides:  # as many launches a round as take about 3 ms
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        for _ in range(3):
            side()
        start.record()
        for _ in range(3):
            side()
        stop.record()
        stop.synchronize()
        inner.append(max(1, math.ceil(3.0 / max(start.elapsed_time(stop) / 3, 1e-3))))
    events = [[(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(rounds)]
              for _ in sides]
    for n in range(rounds):
        order = range(len(sides)) if n % 2 == 0 else reversed(range(len(sides)))
        for i in order:
            start, stop = events[i][n]
            start.record()
            for _ in range(inner[i]):
                sides[i]()
            stop.record()
    torch.cuda.synchronize()
    return [[start.elapsed_time(stop) / inner[i] for start, stop in events[i]] for i in range(len(sides))]


def spread(times):
    """Half the distance of the quartiles, in percent of the median."""
    if len(times) < 4:
        return 0.0
    low, middle, high = statistics.quantiles(times, n=4)
    return 50.0 * (high - low) / middle


def measure(torch, context, shape, causal, rounds):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    batch, heads, length, hdim = shape
    torch.manual_seed(20261)
    q, k, v = (torch.randn(shape, device="cuda").to(torch.bfloat16) for _ in range(3))
    o = torch.full_like(q, math.nan)
    args = call(context.lib, q, k, v, o, causal)
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
    head = "b{batch:<2} h{heads:<3} s{length:<6} d{hdim:<4}".format(**row) + f"{'causal' if row['causal'] else '':7}"
    if row["wrong"]:
        return f"{head} WRONG: {row['wrong']}\n    {row['kernel']}"
    return (f"{head} ours {row['tflops']:7.1f} TFLOP/s ±{row['spread_percent']:3.1f} %   PyTorch "
            f"{row['torch_tflops']:7.1f} TFLOP/s ±{row['torch_spread_percent']:3.1f} %   ratio {row['ratio']:5.2f}\n"
            f"    {row['kernel']}")


def main():
    chosen = arguments()
    try:
        import torch
    except ImportError as error:
        print(f"PyTorch is not installed: {error}", file=sys.stderr)
        return 2
    if not torch.cuda.is_available() or chosen.device >= torch.cuda.device_count():
        print(f"PyTorch sees no device {chosen.device}", file=sys.stderr)
        return 2
    torch.cuda.set_device(chosen.device)
    torch.zeros(1, device="cuda")  # PyTorch's context exists before ours asks for the device
    rows = []
    try:
        lib = fmha.load(chosen.library)
        with fmha.Context(lib, kernels_dir=chosen.kernels, device=chosen.device) as context:
            print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {context.kernel_count()} kernels of ours",
                  flush=True)
            for shape in chosen.shapes:
                for causal in (False, True):
                    if chosen.mask not in ("both", "causal" if causal else "none"):
                        continue
                    rows.append(measure(torch, context, shape, causal, chosen.rounds))
                    print(line(rows[-1]), flush=True)
    except (OSError, fmha.Error) as error:
        print(f"{chosen.library}: {error}", file=sys.stderr)
        return 2
    if chosen.json:
        record = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}
        pathlib.Path(chosen.json).write_text(json.dumps(record, indent=1) + "\n")
    bad = [row for row in rows if row["wrong"]]
    slow = [row for row in rows if not row["wrong"] and row["ratio"] < chosen.minimum]
    print(f"{len(rows)} measured, {len(bad)} wrong, {len(slow)} below {chosen.minimum} of PyTorch's flash back end")
    return 1 if bad or slow or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
