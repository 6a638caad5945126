"""Backward attention of this project beside PyTorch's flash back end, on the same tensors, in one run.

    python3 tests/bench/torch_backward.py --library build/host/lib/libfmha.so --kernels FOLDER_OF_FMHA_BUILD

All sides read the same bf16 tensors (batch, head, row, channel) on one stream: Q, K, V, dO, and O and LSE of PyTorch's forward. Ours is
timed with atomic sums of dQ and deterministic, its workspace where it is fastest (fmha_prepare_workspace), and with atomic sums in a
workspace at an ordinary address, a multiple of 256 as allocators give it; with everything that a call needs: the workspace is prepared anew, and all three stages
run. PyTorch's is the operator of its flash back end alone, without autograd. Rounds alternate between the sides, each round is timed with
events, and medians count. Before it is timed, every gradient of ours is compared with fp32 on sampled heads and with PyTorch's elsewhere.
FLOPs are 10·B·H·S²·D, five products, half of it with a causal mask.

Exit code 0: every ratio to PyTorch reaches --minimum, every ratio of deterministic to atomic sums reaches --minimum-deterministic, and
every gradient is right; 1: not; 2: no library, no kernels, no GPU.
"""

import math
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from torch_bench import (add_mask, argument_parser, attention_arguments, fmha, head, over_shapes, parsed, run, spread, timed_rounds,  # noqa: E402
                         view, wrong_line)

# batch, heads, rows = keys, head dimension
SHAPES = ((8, 16, 2048, 128), (8, 32, 2048, 64), (1, 16, 16384, 128), (1, 32, 16384, 64))
GRADIENTS = ("dq", "dk", "dv")
ORDINARY = 256  # bytes, of which an allocator's addresses are multiples


class Ours:
    """Our side of one shape: arguments, gradients and workspace, at its best place or at an ordinary one."""

    def __init__(self, torch, context, tensors, causal, deterministic, ordinary=False):
        lib, (q, k, v, o, lse, d_o) = context.lib, tensors
        self.context, self.stream = context, torch.cuda.current_stream().cuda_stream
        self.gradients = {name: torch.full_like(of, math.nan) for name, of in zip(GRADIENTS, (q, k, v))}
        self.d = torch.empty_like(lse)
        args = self.args = attention_arguments(lib, fmha.BWD, q, k, v, causal)
        args.deterministic = int(deterministic)
        args.q, args.k, args.v, args.o, args.d_o = (view(lib, tensor) for tensor in (q, k, v, o, d_o))
        args.lse, args.d = (view(lib, tensor.unsqueeze(3)) for tensor in (lse, self.d))
        args.dq, args.dk, args.dv = (view(lib, self.gradients[name]) for name in GRADIENTS)
        size, _ = context.workspace_size(args)
        self.workspace = torch.full((size + ORDINARY,), 255, dtype=torch.uint8, device=q.device)  # NaN, wherever it is read
        address = self.workspace.data_ptr()
        args.workspace = address + -address % ORDINARY if ordinary else fmha.workspace_place(args, address)
        info = context.plan(args)
        self.kernel = info.kernel.decode()

    def __call__(self):
        self.context.prepare_workspace(self.args, self.args.workspace, self.stream)
        self.context.run_on_device(self.args, self.stream)


class Theirs:
    """PyTorch's flash back end: its forward once, and its backward whenever it is called."""

    def __init__(self, torch, q, k, v, d_o, causal):
        results = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal, False)
        self.o, self.lse = results[0], results[1]
        rest = results[2:8]  # cumulative and largest lengths, seed and offset
        self.backward = torch.ops.aten._scaled_dot_product_flash_attention_backward
        cum_q, cum_k, max_q, max_k, seed, offset = rest
        self.args = (d_o, q, k, v, self.o, self.lse, cum_q, cum_k, max_q, max_k, 0.0, causal, seed, offset)

    def __call__(self):
        return self.backward(*self.args)


def exact_head(torch, q, k, v, d_o, causal):
    """The gradients of one head in fp32, by blocks of rows: softmax, then its derivative."""
    scale, rows, block = 1.0 / math.sqrt(q.shape[1]), q.shape[0], 2048
    q, k, v, d_o = (tensor.float() for tensor in (q, k, v, d_o))
    dq, dk, dv = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v)
    for start in range(0, rows, block):
        part = slice(start, min(start + block, rows))
        scores = q[part] @ k.T * scale
        if causal:
            keys = torch.arange(k.shape[0], device=q.device)
            numbers = torch.arange(part.start, part.stop, device=q.device)
            scores.masked_fill_(keys[None, :] > numbers[:, None], -math.inf)
        p = torch.softmax(scores, -1)
        dp = d_o[part] @ v.T
        ds = p * (dp - (p * dp).sum(-1, keepdim=True))
        dq[part] = ds @ k * scale
        dk += ds.T @ q[part] * scale
        dv += p.T @ d_o[part]
    return dict(zip(GRADIENTS, (dq, dk, dv)))


def wrong(torch, ours, theirs, exact):
    """What is wrong with our gradients, "" when nothing is. The yardstick is the error of PyTorch's own against fp32 on the heads of
    `exact`: ours may have twice that there and, between two gradients that are both off, four times."""
    for name in GRADIENTS:
        mine, other = ours[name], theirs[name]
        if not torch.isfinite(mine).all():
            return f"{name} has elements that are not finite"
        our_error = max((mine[at].float() - value[name]).abs().max().item() for at, value in exact.items())
        their_error = max((other[at].float() - value[name]).abs().max().item() for at, value in exact.items())
        if our_error > 2 * their_error + 1e-5:
            return f"{name} is {our_error:.3g} from fp32 on sampled heads, PyTorch's is {their_error:.3g}"
        for b in range(mine.shape[0]):
            for h in range(mine.shape[1]):
                distance = (mine[b, h].float() - other[b, h].float()).abs()
                limit = 4 * their_error + 2.0**-6 * other[b, h].float().abs()
                if (distance > limit).any():
                    row, column = divmod((distance - limit).argmax().item(), distance.shape[1])
                    return (f"{name} b{b} h{h} row {row} column {column}: {mine[b, h, row, column].item():.6g}, "
                            f"PyTorch has {other[b, h, row, column].item():.6g}")
    return ""


def measure(torch, context, shape, causal, rounds):
    batch, heads, length, hdim = shape
    torch.manual_seed(20261)
    q, k, v, d_o = (torch.randn(shape, device="cuda").to(torch.bfloat16) for _ in range(4))
    theirs = Theirs(torch, q, k, v, d_o, causal)
    tensors = (q, k, v, theirs.o, theirs.lse, d_o)
    atomic, fixed = (Ours(torch, context, tensors, causal, deterministic) for deterministic in (False, True))
    ordinary = Ours(torch, context, tensors, causal, False, ordinary=True)
    row = {"batch": batch, "heads": heads, "length": length, "hdim": hdim, "causal": causal, "kernel": atomic.kernel,
           "deterministic_kernel": fixed.kernel, "wrong": ""}
    for side in (atomic, fixed, ordinary):
        side()
    expected = dict(zip(GRADIENTS, theirs()))
    exact = {at: exact_head(torch, q[at], k[at], v[at], d_o[at], causal) for at in {(0, 0), (batch - 1, heads - 1)}}
    for side in (atomic, fixed, ordinary):
        row["wrong"] = row["wrong"] or wrong(torch, side.gradients, expected, exact)
    first = {name: gradient.clone() for name, gradient in fixed.gradients.items()}
    fixed()
    for name in GRADIENTS:
        if not row["wrong"] and not torch.equal(first[name], fixed.gradients[name]):
            row["wrong"] = f"{name} of the deterministic kernel has other bits when it runs again (W-16)"
    if row["wrong"]:
        return row
    times = timed_rounds(torch, (atomic, fixed, ordinary, theirs), rounds)
    flops = 10.0 * batch * heads * length * length * hdim * (0.5 if causal else 1.0)
    for name, milliseconds in zip(("", "deterministic_", "ordinary_", "torch_"), times):
        row[name + "tflops"] = flops / statistics.median(milliseconds) / 1e9
        row[name + "spread_percent"] = spread(milliseconds)
    row["ratio"] = row["tflops"] / row["torch_tflops"]
    row["ordinary_ratio"] = row["ordinary_tflops"] / row["tflops"]
    row["deterministic_ratio"] = row["deterministic_tflops"] / row["tflops"]
    return row


def line(row):
    if row["wrong"]:
        return wrong_line(head(row), row)
    return (f"{head(row)} ours {row['tflops']:6.1f} TFLOP/s ±{row['spread_percent']:3.1f} %   PyTorch {row['torch_tflops']:6.1f} TFLOP/s "
            f"±{row['torch_spread_percent']:3.1f} %   ratio {row['ratio']:5.2f}   deterministic "
            f"{row['deterministic_tflops']:6.1f} TFLOP/s, {row['deterministic_ratio']:5.2f} of ours   ordinary address {row['ordinary_ratio']:5.2f} of ours\n    {row['kernel']}")


def main():
    parser = argument_parser(__doc__, "B,H,S,D", SHAPES, rounds=20)
    parser.add_argument("--minimum-deterministic", type=float, default=0.6,
                        help="smallest ratio of our deterministic speed to our speed with atomic sums")
    add_mask(parser)
    chosen = parsed(parser, "B,H,S,D", SHAPES)

    slow = ((lambda row: row["deterministic_ratio"] < chosen.minimum_deterministic,
             f"below {chosen.minimum_deterministic} of atomic sums"),)
    return run(chosen, over_shapes(chosen, measure), line, "PyTorch's flash back end", slow)


if __name__ == "__main__":
    sys.exit(main())
