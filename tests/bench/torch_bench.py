"""What the comparisons with PyTorch share: the command line, the run from library to exit code, arguments, and timing in alternating rounds."""

import argparse
import json
import math
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "dispatcher" / "python"))
import fmha  # noqa: E402, from this source tree


def argument_parser(doc, shape, shapes, minimum=0.8, rounds=40):
    """A parser with the options of every comparison; `shape` names the integers of one of the `shapes`, "B,H,S,D"."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True, help="libfmha.so")
    parser.add_argument("--kernels", required=True, help="folder that `fmha build` filled")
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--minimum", type=float, default=minimum, help="smallest ratio of our speed to PyTorch's")
    parser.add_argument("--rounds", type=int, default=rounds, help="timed rounds of each side")
    parser.add_argument("--shape", action="append", metavar=shape, help=f"instead of the {len(shapes)} standard shapes")
    parser.add_argument("--json", help="file for the numbers")
    return parser


def add_mask(parser):
    parser.add_argument("--mask", choices=("both", "none", "causal"), default="both")


def parsed(parser, shape, shapes):
    """The checked command line; `chosen.shapes` are tuples of integers."""
    chosen = parser.parse_args()
    if chosen.rounds < 1:
        parser.error(f"--rounds {chosen.rounds}: at least 1")
    try:
        chosen.shapes = [tuple(int(n) for n in text.split(",")) for text in chosen.shape or ()] or list(shapes)
    except ValueError:
        parser.error(f"--shape {chosen.shape}: integers {shape}")
    if any(len(one) != shape.count(",") + 1 or min(one) < 1 for one in chosen.shapes):
        parser.error(f"--shape {chosen.shape}: positive integers {shape}")
    return chosen


def masks(chosen):
    """Whether a mask is causal, for the masks of --mask."""
    return [causal for causal in (False, True) if chosen.mask in ("both", "causal" if causal else "none")]


def over_shapes(chosen, measure):
    """What `run` measures: measure(torch, context, shape, causal, rounds) for every shape and mask of the command line."""
    def measured(torch, context, _):
        for shape in chosen.shapes:
            for causal in masks(chosen):
                yield measure(torch, context, shape, causal, chosen.rounds)

    return measured


def head(row):
    """How the line of a shape and mask begins."""
    return "b{batch:<2} h{heads:<3} s{length:<6} d{hdim:<4}".format(**row) + f"{'causal' if row['causal'] else '':7}"


def wrong_line(begin, row):
    """The line of a row that is wrong."""
    return f"{begin} WRONG: {row['wrong']}\n    {row['kernel']}"


def run(chosen, measured, line, against, slow, prepare=None, whole=None):
    """Measures and returns the exit code: 0 well, 1 something is slow or wrong, 2 nothing can be measured here.

    `measured(torch, context, facts)` yields rows, dicts with "wrong", and with "minimum" where theirs is not that of --minimum; `line(row)` is the text of one. `slow` are pairs of a predicate of a
    right row and of the words that count the rows for which it is true. `prepare(torch)` gives facts for the record and words for
    the first line. `whole(rows)` gives facts about all right rows for the record, lines to print about them, and words for what they do not
    reach together, "" where they do."""
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
            facts, words = prepare(torch) if prepare else ({}, "")
            print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {context.kernel_count()} kernels of ours{words}", flush=True)
            for row in measured(torch, context, facts):
                rows.append(row)
                print(line(row), flush=True)
    except (OSError, fmha.Error) as error:
        print(f"{chosen.library}: {error}", file=sys.stderr)
        return 2
    wrong = [row for row in rows if row["wrong"]]
    together, lines, missed = whole([row for row in rows if not row["wrong"]]) if whole else ({}, [], "")
    for text in lines:
        print(text)
    if chosen.json:
        record = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, **facts, **together, "rows": rows}
        pathlib.Path(chosen.json).write_text(json.dumps(record, indent=1) + "\n")
    counts = [(sum(bool(predicate(row)) for row in rows if not row["wrong"]), words) for predicate, words in
              ((lambda row: row["ratio"] < row.get("minimum", chosen.minimum), f"below {chosen.minimum} of {against}"), *slow)]
    print(f"{len(rows)} measured, {len(wrong)} wrong, " + ", ".join(f"{count} {words}" for count, words in counts) + (f", {missed}" if missed else ""))
    return 1 if wrong or missed or any(count for count, _ in counts) or not rows else 0


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(value) for value in values))


def view(lib, tensor):
    """A torch tensor (batch, head, row, channel) as the library takes it: its memory and strides in elements."""
    return lib.tensor(tensor.data_ptr(), *tensor.stride())


def attention_arguments(lib, api, q, k, v, causal=False):
    """Arguments of an API for tensors of 16 bits, their type, sizes and the mask filled in; bottom-right and top-left are one mask where
    there are as many rows as keys."""
    args = lib.arguments(api)
    args.shape.data_type = {"torch.bfloat16": fmha.BF16, "torch.float16": fmha.FP16}[str(q.dtype)]
    args.shape.batch, args.shape.nhead_q, args.shape.seqlen_q, args.shape.hdim_q = q.shape
    args.shape.nhead_k, args.shape.seqlen_k, args.shape.hdim_v = k.shape[1], k.shape[2], v.shape[3]
    args.shape.max_seqlen_q, args.shape.max_seqlen_k = args.shape.seqlen_q, args.shape.seqlen_k
    args.mask.window_left = -1
    args.mask.window_right = 0 if causal else -1
    args.mask.type = fmha.TOP_LEFT if causal else fmha.NO_MASK
    return args


class Pages:
    """K and V (batch, head, key, channel) in pages (page, head, slot, channel) that lie in another order, and the table that says where."""

    def __init__(self, torch, k, v, page_size):
        batch, _, keys, _ = k.shape
        self.size, self.of_entry = page_size, keys // page_size
        order = torch.randperm(batch * self.of_entry, device=k.device)
        self.count = batch * self.of_entry
        self.table = order.to(torch.int32).reshape(batch, self.of_entry)
        self.lengths = torch.full((batch,), keys, dtype=torch.int32, device=k.device)
        self.k, self.v = (self._pool(torch, tensor, order) for tensor in (k, v))

    def _pool(self, torch, tensor, order):
        _, heads, _, channels = tensor.shape
        pages = tensor.reshape(tensor.shape[0], heads, self.of_entry, self.size, channels).transpose(1, 2)
        pool = torch.empty((len(order), heads, self.size, channels), dtype=tensor.dtype, device=tensor.device)
        pool[order] = pages.reshape(-1, heads, self.size, channels)
        return pool

    def place(self, args):
        """Tells `args` where keys lie; K and V are its caller's to give."""
        args.place.block_table, args.place.block_table_stride = self.table.data_ptr(), self.of_entry
        args.place.page_size, args.place.page_count = self.size, self.count
        args.lengths.seqlen_k = self.lengths.data_ptr()


def exact_rows(torch, q, k, v, b, h, rows, causal):
    """Attention in fp32 of some rows of one head."""
    kv = h * k.shape[1] // q.shape[1]
    scores = (q[b, h, rows].float() @ k[b, kv].float().T) / math.sqrt(q.shape[3])
    if causal:
        keys = torch.arange(k.shape[2], device=q.device)
        scores.masked_fill_(keys[None, :] > rows[:, None], -math.inf)
    return torch.softmax(scores, -1) @ v[b, kv].float()


def wrong_rows(torch, q, k, v, ours, theirs, causal):
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


def exact_of_one_row(torch, q, k, v):
    """Attention in fp32 of one query row, entry by entry."""
    out = torch.empty(q.shape, device=q.device)
    group = q.shape[1] // k.shape[1]
    for b in range(q.shape[0]):
        rows = q[b].reshape(k.shape[1], group, q.shape[3]).float()
        scores = rows @ k[b].float().transpose(1, 2) / math.sqrt(q.shape[3])
        out[b] = (torch.softmax(scores, -1) @ v[b].float()).reshape(q.shape[1:])
    return out


def wrong_anywhere(torch, ours, theirs, expected):
    """What is wrong with an output, "" when nothing is: it may be twice as far from fp32 as PyTorch's, and half a unit in the
    last place of bf16."""
    if not torch.isfinite(ours).all():
        return "it has elements that are not finite"
    limit = 2 * (theirs.float() - expected).abs().max() + 2.0**-8 * expected.abs() + 1e-6
    distance = (ours.float() - expected).abs()
    if (distance > limit).any():
        at = (distance - limit).flatten().argmax().item()
        return (f"element {at}: {ours.flatten()[at].item():.6g}, fp32 has {expected.flatten()[at].item():.6g}, PyTorch "
                f"{theirs.flatten()[at].item():.6g}")
    return ""


def graph_of(torch, side, launches):
    """`side` so often in one graph, as a function that launches it."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            side()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(launches):
            side()
    return graph.replay


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
