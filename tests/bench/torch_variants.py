"""Forward attention of this project under masks, with grouped heads and in group mode, beside its own plain kernel, in one run.

    python3 tests/bench/torch_variants.py --library build/host/lib/libfmha.so --kernels FOLDER_OF_FMHA_BUILD

Its kernels are 32, which take nvcc some 160 s of processor time:

    fmha build --arch sm_90 --family fwd --out FOLDER_OF_FMHA_BUILD --where "c.pipeline == 'ws' and c.data_type == 'bf16' and not c.has_lse and \
        not c.has_logits_soft_cap and c.bias_type == 'none' and c.hdim_q in (64, 128, 256) and c.hdim_q == c.hdim_v and c.constraint != 'even_head_groups'"

Each variant of a shape is timed in alternating rounds with two plain kernels. All are counted in FLOPs of what they see, 4·D for a query row
and a key. Variants are a causal mask, a causal window of a quarter of the keys, a window of 512 keys to both sides, four query heads a KV head
with and without a causal mask, and group mode with equal lengths with and without one.

- The ratio to the *same shape*, in batch mode, without a mask and with as many KV heads as query heads, says how far a window that sees an eighth of
  the keys is from taking an eighth of the time.
- The ratio to the *same work* is judged. Beside a window stands a plain kernel with as many keys as its rows see on average, beside grouped heads and
  group mode batch mode with a KV head a query head, under the same mask. A causal mask by itself has the same shape beside it.

Before a variant is timed, its output is compared with attention in fp32 on sampled rows; the yardstick is the error of PyTorch's own
attention in the type of the tensors.

With --flex PyTorch's FlexAttention is timed in the same rounds, under the same mask and with the same plain kernel's keys (not in group mode). It is
compiled for every variant, some seconds each, and not judged.

Exit code 0: every ratio reaches --minimum and every output is right; 1: not; 2: no library, no kernels, no GPU.
"""

import dataclasses
import importlib
import math
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from torch_bench import argument_parser, attention_arguments, fmha, parsed, run, spread, timed_rounds, view, wrong_line  # noqa: E402

# batch, heads, rows = keys, head dimension: 16384 rows of 2048 channels
SHAPES = tuple((16384 // length, 2048 // hdim, length, hdim) for hdim in (64, 128, 256) for length in (2048, 8192))
KV_GROUP = 4


@dataclasses.dataclass(frozen=True)
class Variant:
    """A row sees keys from `left` before its own to `right` behind; -1: all."""
    name: str
    left: int = -1
    right: int = -1
    kv_group: int = 1
    packed: bool = False
    keys: int = 0
    """Of an entry; 0: as many as rows."""

    def seen(self, length):
        """Pairs of a row and a key that it sees, of one head."""
        keys = self.keys or length
        left = length if self.left < 0 else self.left
        right = keys if self.right < 0 else self.right
        return sum(min(keys - 1, row + right) - max(0, row - left) + 1 for row in range(length))

    def of_same_work(self, length):
        """Batch mode, a KV head a query head, and as many pairs that are seen: a window is so many keys of every row."""
        if self.left >= 0:
            return Variant("same work", keys=-(-self.seen(length) // length))
        return Variant("same work", right=self.right if self.packed or self.kv_group > 1 else -1)


def variants(length):
    return (Variant("causal", right=0), Variant("causal, last quarter", left=length // 4 - 1, right=0), Variant("512 to both sides", left=512, right=512),
            Variant("grouped heads", kv_group=KV_GROUP), Variant("grouped heads, causal", right=0, kv_group=KV_GROUP),
            Variant("group mode", packed=True), Variant("group mode, causal", right=0, packed=True))


def flops(batch, heads, hdim, seen):
    return 4.0 * batch * heads * hdim * seen


def exact_rows(torch, q, k, v, rows, variant, typed):
    """Attention of some rows of one head in fp32; `typed`: with weights and result of the tensors' type, as kernels have them."""
    scores = (q[rows].float() @ k.float().T) / math.sqrt(q.shape[1])
    distance = torch.arange(k.shape[0], device=q.device)[None, :] - rows[:, None]
    if variant.right >= 0:
        scores.masked_fill_(distance > variant.right, -math.inf)
    if variant.left >= 0:
        scores.masked_fill_(-distance > variant.left, -math.inf)
    weights = torch.softmax(scores, -1)
    return ((weights.to(q.dtype) @ v).float() if typed else weights @ v.float())


def wrong(torch, q, k, v, ours, variant):
    """What is wrong with our output (batch, head, row, channel) on sampled rows, "" when nothing is."""
    if not torch.isfinite(ours).all():
        return "it has elements that are not finite"
    batch, heads, length, _ = q.shape
    picked = {0, 1, 63, 64, 127, 128, length // 2, length - 2, length - 1} | set(torch.randint(length, (55,)).tolist())
    rows = torch.tensor(sorted(row for row in picked if 0 <= row < length), device=q.device)
    our_error = their_error = 0.0
    for b, h in {(0, 0), (batch - 1, heads - 1), (batch // 2, heads // 2), (batch - 1, 0)}:
        kv = h * k.shape[1] // heads
        exact, typed = (exact_rows(torch, q[b, h], k[b, kv], v[b, kv], rows, variant, how) for how in (False, True))
        our_error = max(our_error, (ours[b, h, rows].float() - exact).abs().max().item())
        their_error = max(their_error, (typed - exact).abs().max().item())
    if our_error > 2 * their_error + 1e-5:
        return f"on sampled rows it is {our_error:.3g} from fp32, attention of this type {their_error:.3g}"
    return ""


def call_of(torch, context, q, k, v, o, variant):
    """A function that starts our kernel, and its name."""
    batch, heads, length, _ = q.shape
    args = attention_arguments(context.lib, fmha.FWD, q, k, v, variant.right == 0 and variant.left < 0)
    args.q, args.k, args.v, args.o = (view(context.lib, tensor) for tensor in (q, k, v, o))
    if variant.left >= 0:
        args.mask.type = fmha.TOP_LEFT
        args.mask.window_left, args.mask.window_right = variant.left, variant.right
    starts = torch.arange(0, (batch + 1) * length, length, dtype=torch.int32, device=q.device)
    if variant.packed:  # entries of (batch, row, head, channel) follow one another
        args.shape.mode = fmha.GROUP
        args.lengths.seqstart_q = args.lengths.seqstart_k = starts.data_ptr()
    stream = torch.cuda.current_stream().cuda_stream
    info = context.run_on_device(args, stream, context.lib.fresh("fmha_run_info"))
    torch.cuda.synchronize()
    # The arguments have addresses only, so the tensors are kept here.
    return (lambda _=(q, k, v, o, starts): context.run_on_device(args, stream)), info.kernel.decode()


def tensors(torch, shape, variant, dtype):
    """Q, K, V and O as (batch, head, row, channel), laid out as (batch, row, head, channel)."""
    batch, heads, length, hdim = shape
    torch.manual_seed(20261)
    keys, kv_heads = variant.keys or length, heads // variant.kv_group
    made = [torch.randn((batch, rows, of, hdim), device="cuda").to(dtype).transpose(1, 2)
            for rows, of in ((length, heads), (keys, kv_heads), (keys, kv_heads))]
    return (*made, torch.full((batch, length, heads, hdim), math.nan, device="cuda", dtype=dtype).transpose(1, 2))


def flex_call(torch, q, k, v, variant):
    """A function that starts PyTorch's FlexAttention, compiled for this variant."""
    flex = torch.nn.attention.flex_attention
    compiled = torch.compile(flex.flex_attention, dynamic=False)
    length, keys = q.shape[2], k.shape[2]
    left, right = (length if side < 0 else side for side in (variant.left, variant.right))
    mask = None
    if variant.left >= 0 or variant.right >= 0:
        mask = flex.create_block_mask(lambda b, h, row, key: (row - key <= left) & (key - row <= right), None, None, length, keys, device=q.device)
    return lambda: compiled(q, k, v, block_mask=mask, enable_gqa=variant.kv_group > 1)


def measure(torch, context, shape, variant, chosen):
    batch, heads, length, hdim = shape
    dtype = torch.float16 if chosen.dtype == "fp16" else torch.bfloat16
    sides = (("", variant), ("plain_", Variant("plain")), ("same_", variant.of_same_work(length)))
    calls, flex_sides = [], []
    row = {"batch": batch, "heads": heads, "length": length, "hdim": hdim, "variant": variant.name, "wrong": ""}
    for name, one in sides:
        q, k, v, o = tensors(torch, shape, one, dtype)
        call, row[name + "kernel"] = call_of(torch, context, q, k, v, o, one)
        row["wrong"] = row["wrong"] or wrong(torch, q, k, v, o, one)
        calls.append(call)
        if chosen.flex and not variant.packed and name != "plain_":
            flex_sides.append((name + "flex_", one, flex_call(torch, q, k, v, one)))
    if row["wrong"]:
        return row
    sides += tuple((name, one) for name, one, _ in flex_sides)
    calls += [call for _, _, call in flex_sides]
    for (name, one), milliseconds in zip(sides, timed_rounds(torch, calls, chosen.rounds)):
        row[name + "tflops"] = flops(batch, heads, hdim, one.seen(length)) / statistics.median(milliseconds) / 1e9
        row[name + "spread_percent"] = spread(milliseconds)
    row["plain_ratio"], row["ratio"] = row["tflops"] / row["plain_tflops"], row["tflops"] / row["same_tflops"]
    if flex_sides:
        row["flex_ratio"], row["flex_own_ratio"] = row["tflops"] / row["flex_tflops"], row["flex_tflops"] / row["same_flex_tflops"]
    return row


def line(row):
    begin = "b{batch:<2} h{heads:<3} s{length:<6} d{hdim:<4} {variant:22}".format(**row)
    if row["wrong"]:
        return wrong_line(begin, row)
    return (f"{begin} TFLOP/s {row['tflops']:6.1f} ±{row['spread_percent']:3.1f} %   plain {row['plain_tflops']:6.1f} "
            f"ratio {row['plain_ratio']:5.3f}   same work {row['same_tflops']:6.1f} ±{row['same_spread_percent']:3.1f} %   ratio {row['ratio']:5.3f}\n"
            f"    {row['kernel']}" + flex_line(row))


def flex_line(row):
    if "flex_ratio" not in row:
        return ""
    return (f"\n    FlexAttention {row['flex_tflops']:6.1f} ±{row['flex_spread_percent']:3.1f} %   ratio {row['flex_ratio']:5.3f}   "
            f"its same work {row['same_flex_tflops']:6.1f}   its ratio {row['flex_own_ratio']:5.3f}")


def main():
    parser = argument_parser(__doc__, "B,H,S,D", SHAPES, minimum=0.9)
    parser.add_argument("--dtype", choices=("bf16", "fp16"), default="bf16")
    parser.add_argument("--flex", action="store_true", help="time PyTorch's FlexAttention too")
    chosen = parsed(parser, "B,H,S,D", SHAPES)
    if any(heads % KV_GROUP for _, heads, _, _ in chosen.shapes):
        parser.error(f"--shape {chosen.shape}: H is no multiple of {KV_GROUP}")

    def measured(torch, context, _):
        if chosen.flex:
            importlib.import_module("torch.nn.attention.flex_attention")
        for shape in chosen.shapes:
            for variant in variants(shape[2]):
                yield measure(torch, context, shape, variant, chosen)
                if chosen.flex:
                    torch._dynamo.reset()  # it keeps a few compiled forms of a function, and then compiles no more
            torch.cuda.empty_cache()

    return run(chosen, measured, line, "the same work", (), lambda _: ({"dtype": chosen.dtype}, f", {chosen.dtype}"))


if __name__ == "__main__":
    sys.exit(main())
