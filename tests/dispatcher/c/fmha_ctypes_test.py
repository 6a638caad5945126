"""Calls libfmha.so through ctypes: layouts both ways, known answers. Usage: FILE LIBRARY FOLDER_OF_FMHA_PY"""

import ctypes
import math
import sys
from ctypes import c_float, c_int32, c_uint16, c_void_p

sys.path.insert(0, sys.argv[2])
import fmha  # noqa: E402, from the folder that was just named


def run_example(context, change=lambda args: None):
    rows, keys, dim = 3, 4, 8
    q, k, v, o = ((c_float * (n * dim))() for n in (rows, keys, keys, rows))
    lse = (c_float * rows)()
    for i, value in enumerate((1, 2, -1)):
        q[i * dim] = value
    for j, (key, value) in enumerate(zip((1, 0, -1, 2), (1, 2, 4, -8))):
        k[j * dim], v[j * dim] = key, value
    lib = context.lib

    def tensor(data, length, width):
        return lib.tensor(ctypes.cast(data, c_void_p), length * width, length * width, width, 1)

    args = lib.arguments(fmha.FWD)
    args.shape.batch = args.shape.nhead_q = args.shape.nhead_k = 1
    args.shape.seqlen_q, args.shape.seqlen_k, args.shape.hdim_q, args.shape.hdim_v = rows, keys, dim, dim
    args.mask.window_left = args.mask.window_right = -1
    args.score.scale_s = 1.0
    args.q, args.k, args.v = tensor(q, rows, dim), tensor(k, keys, dim), tensor(v, keys, dim)
    args.o, args.lse = tensor(o, rows, dim), tensor(lse, rows, 1)
    change(args)
    info = context.run_on_host(args)
    return [o[i * dim] for i in range(rows)], list(lse), info


def close(values, expected):
    return all(math.isclose(a, b, rel_tol=2e-5) for a, b in zip(values, expected))


def check_numpy(context):
    """The same call on numpy's own memory and strides, where numpy is installed."""
    try:
        import numpy as np
    except ImportError:
        print("numpy is not installed: the part on its arrays is not run")
        return
    generator = np.random.default_rng(1)
    q, k, v = (generator.standard_normal((2, 4, 16, 64)).astype(np.float32) for _ in range(3))
    o = np.zeros_like(q)

    def view(array):
        step = [s // array.itemsize for s in array.strides]
        return context.lib.tensor(array.ctypes.data, *step)

    def change(args):
        args.shape.batch, args.shape.nhead_q, args.shape.nhead_k, args.shape.seqlen_q, args.shape.seqlen_k = 2, 4, 4, 16, 16
        args.shape.hdim_q = args.shape.hdim_v = 64
        args.score.scale_s = 0.0
        args.q, args.k, args.v, args.o, args.lse = view(q), view(k), view(v), view(o), context.lib.tensor()

    run_example(context, change)
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2) / 8.0
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ v.astype(np.float64)
    assert np.abs(o - expected).max() < 1e-5


def refused(call, status, rule=""):
    """The error of a call that must fail with this status."""
    try:
        call()
    except fmha.Error as error:
        assert (error.status, error.rule) == (status, rule), error
        return str(error)
    raise AssertionError("it was accepted")


def check_layout_is_compared(lib):
    """A list of members that does not fit the structure must be noticed."""
    whole = fmha.SCALARS["float"]
    fmha.SCALARS["float"] = ctypes.c_double
    assert "bytes here" in refused(lambda: lib.structure("fmha_score"), 1)
    fmha.SCALARS["float"] = whole
    assert "no structure" in refused(lambda: lib.structure("fmha_nonsense"), 1)


def check_every_api_plans(context):
    """All six APIs plan through one function, which looks at no memory."""
    placeholder = ctypes.c_char()
    for api in range(6):
        args = context.lib.arguments(api)
        shape = args.shape
        shape.data_type = fmha.BF16
        shape.batch = shape.nhead_q = shape.nhead_k = 2
        shape.seqlen_q, shape.seqlen_k, shape.hdim_q, shape.hdim_v = 128, 256, 128, 128
        data = ctypes.addressof(placeholder)
        if hasattr(args, "place") and api in (fmha.FWD_PAGEDKV, fmha.BATCH_PREFILL):
            args.place.page_size, args.place.block_table, args.place.page_count = 128, data, 8
            args.place.kv_layout = 1
        if api == fmha.BATCH_PREFILL:
            shape.mode, shape.max_seqlen_q, shape.max_seqlen_k = fmha.GROUP, 128, 256
            args.place.page_size = 16
            args.lengths.seqstart_q = data
            args.lengths.seqlen_k = data
        if api == fmha.FWD_APPENDKV:
            args.lengths.seqlen_k = data
            args.seqlen_knew = 1
        info = context.plan(args)
        assert info.kernel, api
        size, exact = context.workspace_size(args)
        assert size == info.workspace_bytes
        assert (size > 0) == (api in (fmha.FWD_SPLITKV, fmha.BWD)), (api, size)
        if api in (fmha.FWD_SPLITKV, fmha.BWD):
            assert "is NULL" in refused(lambda: context.run_on_host(args), 1)


def check_append(context):
    """Two keys go behind the one of a cache, the first pair of the first of them turned by a right angle."""
    one, two, dim, capacity = 0x3F80, 0x4000, 32, 4  # bf16
    array = lambda rows, width, code: (c_uint16 * (rows * width))(*[code] * (rows * width))
    k, v, k_new, v_new = array(capacity, dim, 7), array(capacity, dim, 7), array(2, dim, one), array(2, dim, 0x7FC1)
    cos, sin = array(capacity, 8, one), array(capacity, 8, 0)
    k_new[1], cos[8], sin[8] = two, 0, one  # position 1
    cached = (c_int32 * 1)(1)
    lib = context.lib

    def tensor(data, width):
        return lib.tensor(ctypes.cast(data, c_void_p), 0, 0, width, 1)

    args = lib.arguments(fmha.FWD_APPENDKV)
    shape = args.shape
    shape.data_type = fmha.BF16
    shape.batch = shape.nhead_q = shape.nhead_k = shape.seqlen_q = 1
    shape.seqlen_k, shape.hdim_q, shape.hdim_v = capacity, dim, dim
    args.seqlen_knew = 2
    args.k, args.v, args.k_new, args.v_new = (tensor(data, dim) for data in (k, v, k_new, v_new))
    args.lengths.seqlen_k = ctypes.cast(cached, c_void_p)
    args.rope.type, args.rope.rotary_dim = 1, 16
    args.rope.cos, args.rope.sin = tensor(cos, 8), tensor(sin, 8)
    context.run_on_host(args)
    assert k[dim : dim + 3] == [0xC000, one, one], k[dim : dim + 3]
    assert k[2 * dim : 3 * dim] == [one] * dim and v[dim : 3 * dim] == [0x7FC1] * (2 * dim)
    for cache in (k, v):
        assert cache[:dim] == [7] * dim and cache[3 * dim :] == [7] * dim, "another row has changed"
    cached[0] = 3
    assert "room for 4" in refused(lambda: context.run_on_host(args), 2, "V-3")


def check_paged(context):
    """Two pages of a pool of four hold the keys; all scores are 0, so that every output is the mean of the values."""
    one, keys, page, dim = 0x3F80, 130, 128, 128  # bf16
    q, o = (c_uint16 * dim)(), (c_uint16 * dim)()
    pool = lambda code: (c_uint16 * (4 * page * dim))(*[code] * (4 * page * dim))
    k, v = pool(0x7FC1), pool(0x7FC1)  # NaN where no key is
    table = (c_int32 * 3)(3, 1, -9)
    lengths = (c_int32 * 1)(keys)
    for j in range(keys):
        first = (table[j // page] * page + j % page) * dim
        for c in range(dim):
            k[first + c] = 0
            v[first + c] = one if c % 2 == 0 or j < page else 0  # odd channels: 128 of the 130 keys
    lib = context.lib

    def tensor(data, rows):
        return lib.tensor(ctypes.cast(data, c_void_p), rows * dim, rows * dim, dim, 1)

    args = lib.arguments(fmha.FWD_PAGEDKV)
    shape = args.shape
    shape.data_type = fmha.BF16
    shape.batch = shape.nhead_q = shape.nhead_k = shape.seqlen_q = 1
    shape.seqlen_k, shape.hdim_q, shape.hdim_v = keys, dim, dim
    args.q, args.o = tensor(q, 1), tensor(o, 1)
    args.k, args.v = tensor(k, page), tensor(v, page)
    args.lengths.seqlen_k = ctypes.cast(lengths, c_void_p)
    place = args.place
    place.page_size, place.page_count, place.block_table_stride = page, 4, 3
    place.block_table = ctypes.cast(table, c_void_p)
    context.run_on_host(args)
    assert o[0::2] == [one] * (dim // 2), o[:4]
    mean = round((128 / 130) * 256) / 256  # the nearest number of bf16 below 1
    assert o[1::2] == [0x3F00 + round((mean - 0.5) * 256)] * (dim // 2), o[:4]
    table[1] = 4
    assert "the pool has 4 pages" in refused(lambda: context.run_on_host(args), 2, "P-2")


def check_batch_prefill(context):
    """Two pages of 16 of a pool of four hold the keys, as vectors of eight; all scores are 0, as for paged-KV."""
    one, keys, page, dim, vector = 0x3F80, 20, 16, 128, 8  # bf16
    q, o = (c_uint16 * dim)(), (c_uint16 * dim)()
    k, v = ((c_uint16 * (4 * page * dim))(*[0x7FC1] * (4 * page * dim)) for _ in range(2))  # NaN where no key is
    indices, indptr, last = (c_int32 * 3)(-9, 3, 1), (c_int32 * 2)(1, 3), (c_int32 * 1)(keys - page)
    starts = (c_int32 * 2)(0, 1)
    for j in range(keys):
        first, t = indices[1 + j // page] * page * dim, j % page
        for c in range(dim):
            k[first + c // vector * page * vector + t * vector + c % vector] = 0
            v[first + t // vector * dim * vector + c * vector + t % vector] = one if c % 2 == 0 or j < page else 0
    lib = context.lib
    address = lambda data: ctypes.cast(data, c_void_p)
    args = lib.arguments(fmha.BATCH_PREFILL)
    shape = args.shape
    shape.data_type, shape.mode = fmha.BF16, fmha.GROUP
    shape.batch = shape.nhead_q = shape.nhead_k = shape.seqlen_q = shape.max_seqlen_q = 1
    shape.max_seqlen_k, shape.hdim_q, shape.hdim_v = keys, dim, dim
    args.q, args.o = (lib.tensor(address(data), 0, dim, dim, 1) for data in (q, o))
    args.k, args.v = (lib.tensor(address(data), page * dim, page * dim, 0, 0) for data in (k, v))
    args.lengths.seqstart_q = address(starts)
    place = args.place
    place.page_size, place.page_count, place.kv_layout, place.kv_lookup = page, 4, 0, 1
    place.kv_indptr, place.kv_page_indices, place.kv_last_page_lens = address(indptr), address(indices), address(last)
    context.run_on_host(args)
    assert o[0::2] == [one] * (dim // 2), o[:4]
    mean = round((16 / 20) * 256) / 256  # the nearest number of bf16 below 1
    assert o[1::2] == [0x3F00 + round((mean - 0.5) * 256)] * (dim // 2), o[:4]
    last[0] = 17
    assert "allowed are 1 to 16" in refused(lambda: context.run_on_host(args), 2, "B-4")
    last[0], indices[2] = 4, 4
    assert "the pool has 4 pages" in refused(lambda: context.run_on_host(args), 2, "B-4")
    indices[2], indptr[1] = 1, 0
    assert "may not decrease" in refused(lambda: context.run_on_host(args), 2, "B-4")
    indptr[1], place.kv_lookup = 3, 0
    assert "kv_indptr belongs to the look-up sglang_1d" in refused(lambda: context.run_on_host(args), 2, "B-4")
    place.kv_indptr = place.kv_page_indices = place.kv_last_page_lens = None
    args.shape.seqlen_k = 1
    assert "pages need a block_table" in refused(lambda: context.run_on_host(args), 2, "P-2")


def check_heuristic(context):
    asked = []

    def prefer(args):
        asked.append(args)
        return ["fwd_gfx950_fp32_*_h256x256_*"]

    context.set_heuristic(prefer)
    o, _, info = run_example(context)
    assert asked and b"_h256x256_" in info.kernel and close(o, (-4.61190821, -6.76231966, 2.88009817)), (info.kernel, o)
    context.set_heuristic(lambda args: ["nothing_of_this_name"])
    assert "nothing_of_this_name" in refused(lambda: run_example(context), 1)
    context.set_heuristic(None)
    assert b"_h256x256_" not in run_example(context)[2].kernel


def check_correction(context):
    wrong = context.correct({"signature": {"data_type": "fp16", "hdim_q": 128, "hdim_v": 128, "mode": "group"},
                             "algorithm": {"pipeline": "qr"}})
    assert not wrong["valid"] and any(rule.startswith("VR-10") for rule in wrong["broken"]), wrong
    assert wrong["config"]["signature"]["mode"] == "group"
    stated = context.correct({"signature": {"hdim_q": 112, "hdim_v": 112}, "algorithm": {"pipeline": "qr"}})["config"]
    assert (stated["signature"]["hdim_q"], stated["algorithm"]["pipeline"]) == (112, "qr"), stated
    right = context.correct(wrong["config"])
    assert right["valid"] and right["config"] == wrong["config"] and not right["changes"], right


def main():
    lib = fmha.load(sys.argv[1])
    check_layout_is_compared(lib)
    with fmha.Context(lib, "gfx950") as context:
        o, lse, info = run_example(context)
        assert close(o, (-4.61190821, -6.76231966, 2.88009817)), o
        assert close(lse, (2.44018970, 4.14507794, 1.44018970)), lse
        assert b"fp32" in info.kernel

        def two_lengths(args):
            array = (c_int32 * 2)(0, 3)
            args.lengths.seqlen_q = args.lengths.cu_seqlen_q = ctypes.cast(array, c_void_p)

        refused(lambda: run_example(context, two_lengths), 2, "N-3")
        check_numpy(context)
        check_every_api_plans(context)
        check_append(context)
        check_paged(context)
        check_batch_prefill(context)
        check_heuristic(context)
        check_correction(context)


if __name__ == "__main__":
    main()
