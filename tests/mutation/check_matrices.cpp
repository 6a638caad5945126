// The matrices of a block: of which head, from which row on, how large, and which descales and sink logits belong to them.

#include "kernels/programs/fmha_batch_prefill.hpp"
#include "kernels/programs/fmha_bwd_dot_do_o.hpp"
#include "kernels/programs/fmha_bwd_dq_dk_dv.hpp"
#include "kernels/programs/fmha_fwd_pagedkv.hpp"
#include "kernels/programs/fmha_fwd_splitkv.hpp"
#include "kernels/programs/fmha_fwd_splitkv_combine.hpp"
#include "tests/mutation/checks.hpp"
#include "tests/mutation/tensors.hpp"

#include <cmath>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace fmha::test {
namespace {

using kernels::Entry;
using kernels::Matrix;

constexpr Entry entry{6, 9, 20, 30};
constexpr std::int64_t b = 3, h = 5, hk = 2, channels_q = 16, channels_v = 24;

bool is(const Matrix& matrix, std::int64_t which, std::int64_t head, std::int64_t row, std::int64_t rows,
        std::int64_t cols) {
    return matrix.offset(0, 0) == tensor(which).offset(b, head, row, 0) &&
           matrix.tensor.row_stride == tensor(which).row_stride && matrix.rows.size == rows &&
           matrix.cols.size == cols && matrix.cols.read == cols && matrix.cols.written == cols;
}

KernelConfig padded() {
    KernelConfig config;
    config.algorithm.tile = {.m0 = 4, .n0 = 4, .n1 = 4};
    config.algorithm.pad = {true, true, 1, 1};
    return config;
}

template <class Args>
Args args_of() {
    Args args;
    args.shape.hdim_q = channels_q;
    args.shape.hdim_v = channels_v;
    args.q = tensor(1);
    args.k = tensor(2);
    args.v = tensor(3);
    args.o = tensor(4);
    args.lse = tensor(5);
    args.bias = tensor(6);
    if constexpr (requires { args.randval; }) args.randval = tensor(7);
    return args;
}

bool forward_matrices() {
    const auto args = args_of<FwdArgs>();
    const auto in = kernels::FwdMatrices::of(padded(), args, entry, b, h, hk);
    const auto to = kernels::FwdResults::of(padded(), args, entry, b, h);
    auto split = args_of<SplitKvArgs>();
    split.partials.o_acc = tensor(8);
    split.partials.lse_acc = tensor(9);
    const auto part = kernels::SplitResults::of(padded(), split, entry, b, 11);
    return is(in.q, 1, h, 20, 6, channels_q) && is(in.k, 2, hk, 30, 9, channels_q) &&
           is(in.v, 3, hk, 30, 9, channels_v) && is(in.bias, 6, h, 20, 6, 9) &&
           is(in.randval, 7, h, 20, 6, 9) && is(to.o, 4, h, 20, 6, channels_v) &&
           is(to.lse, 5, h, 20, 6, 1) && is(part.o, 8, 11, 20, 6, channels_v) &&
           is(part.lse, 9, 11, 20, 6, 1);
}

bool backward_matrices() {
    auto args = args_of<BwdArgs>();
    args.d_o = tensor(8);
    args.d = tensor(9);
    args.dq = tensor(10);
    args.dk = tensor(11);
    args.dv = tensor(12);
    args.dbias = tensor(13);
    const auto extents = kernels::BwdExtents::of(padded(), args, entry);
    const auto in = kernels::BwdQueries::of(args, extents, entry, b, h);
    kernels::KeyJob job;
    job.b = b;
    job.h = h;
    const auto each = kernels::BwdKeys::of(args, extents, entry, job, hk);
    args.reduce_dk_dv = true;
    const auto sums = kernels::BwdKeys::of(args, extents, entry, job, hk);
    const auto dot = kernels::DotDoOMatrices::of(padded(), args, entry, b, h);
    return is(in.q, 1, h, 20, 6, channels_q) && is(each.k, 2, hk, 30, 9, channels_q) &&
           is(each.v, 3, hk, 30, 9, channels_v) && is(in.d_o, 8, h, 20, 6, channels_v) &&
           is(in.lse, 5, h, 20, 6, 1) && is(in.d, 9, h, 20, 6, 1) && is(in.bias, 6, h, 20, 6, 9) &&
           is(in.randval, 7, h, 20, 6, 9) && is(each.dk, 11, h, 30, 9, channels_q) &&
           is(each.dv, 12, h, 30, 9, channels_v) && is(sums.k, 2, hk, 30, 9, channels_q) &&
           is(sums.v, 3, hk, 30, 9, channels_v) && is(sums.dk, 11, hk, 30, 9, channels_q) &&
           is(sums.dv, 12, hk, 30, 9, channels_v) && is(in.dbias, 13, h, 20, 6, 9) &&
           is(dot.d_o, 8, h, 20, 6, channels_v) && is(dot.o, 4, h, 20, 6, channels_v) &&
           is(dot.lse, 5, h, 20, 6, 1) && is(dot.d, 9, h, 20, 6, 1);
}

/// Calls for every element of a tile that is larger than the matrix.
struct TileContext : CacheContext {
    template <class Change>
    void map(std::vector<float>& scores, Change change) const {
        for (int r = 0; r < 8; ++r)
            for (int c = 0; c < 8; ++c) {
                float& score = scores[static_cast<std::size_t>(8 * r + c)];
                score = change(score, r, c);
            }
    }
};

/// Rows of packed heads are those of one head after another.
bool packed_matrices() {
    TileContext ctx;
    ctx.config = padded();
    ctx.config.signature.bias = BiasType::elementwise;
    auto args = args_of<PagedKvArgs>();
    auto in = kernels::CacheMatrices::of(ctx, args, entry, kernels::FwdItem{b, h, 0, 0}, hk, {0, 9});
    in.pack(ctx, 4);
    for (std::int64_t r = 0; r < 4; ++r)
        if (in.q.offset(r, 3) != args.q.offset(b, h + r, 20, 3) ||
            in.bias.offset(r, 3) != args.bias.offset(b, h + r, 20, 3))
            return false;
    return in.q.rows.size == 4 && in.bias.rows.size == 4;
}

/// Every row is looked up where a tile may lie in several pages.
bool gathers_where_needed() {
    for (const std::int16_t m0 : {8, 16, 32})
        for (const std::int16_t n0 : {8, 16, 32})
            for (const std::int32_t page_size : {1, 8, 16, 64}) {
                TileContext ctx;
                ctx.config = padded();
                ctx.config.algorithm.tile.m0 = m0;
                ctx.config.algorithm.tile.n0 = n0;
                ctx.config.signature.page_size = page_size;
                ctx.config.signature.kv_layout = KvLayout::linear;
                constexpr std::int32_t pages[] = {0}, indptr[] = {0, 1, 1, 1, 1};
                auto args = args_of<BatchPrefillArgs>();
                args.place.kv_page_indices = pages;
                args.place.kv_indptr = indptr;
                const auto in =
                    kernels::PrefillMatrices::of(ctx, args, entry, kernels::FwdItem{b, h, 0, 0}, hk);
                if (in.gathers != (page_size < n0) || (1 << in.page_bits) != page_size) return false;
            }
    return true;
}

/// A view of numbers that tell their own place.
TensorView numbered(const std::vector<float>& memory, std::int64_t which) {
    TensorView view;
    view.data = const_cast<float*>(memory.data());
    view.batch_stride = 1000 + which;
    view.head_stride = 100 + which;
    view.row_stride = 3 + which;
    return view;
}

} // namespace

bool matrices_are_right() {
    return forward_matrices() && backward_matrices() && packed_matrices() && gathers_where_needed();
}

bool descales_are_right() {
    std::vector<float> memory(6000);
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<float>(i + 10);
    const auto number = [](std::int64_t place) { return static_cast<float>(place + 10); };
    constexpr std::int32_t begins_q[] = {0, 2, 4, 7, 9}, begins_k[] = {0, 1, 5, 8, 9};
    for (const QScale scale : {QScale::no_scale, QScale::pertensor, QScale::blockscale, QScale::kv_blockscale,
                               QScale::per_token_head})
        for (const bool group : {false, true}) {
            QuantArgs quant;
            quant.q_descale = numbered(memory, 1);
            quant.k_descale = numbered(memory, 2);
            quant.v_descale = numbered(memory, 4);
            quant.block_scale_size_q = 8;
            quant.block_scale_size_k = 16;
            if (group) quant.block_scale_seqstart_q = begins_q, quant.block_scale_seqstart_k = begins_k;
            KernelConfig config;
            config.signature.qscale = scale;
            const auto found = kernels::Descales::of(config, quant, b, h, hk);
            const std::int64_t first_q = group ? begins_q[b] : 0, first_k = group ? begins_k[b] : 0;
            kernels::KeyTile tile;
            for (const std::int64_t row : {0, 7, 8, 20})
                for (const std::int64_t key : {0, 15, 16, 40}) {
                    tile.first = key;
                    tile.scale_page = 4;
                    float q = 1.0F, k = 1.0F, v = 1.0F, whole_v = 1.0F;
                    if (scale == QScale::pertensor) q = k = whole_v = number(0);
                    if (scale == QScale::blockscale) {
                        q = number(quant.q_descale.offset(b, h, first_q + row / 8, 0));
                        k = number(quant.k_descale.offset(b, hk, first_k + key / 16, 0));
                        v = number(quant.v_descale.offset(b, hk, first_k + key / 16, 0));
                    }
                    if (scale == QScale::kv_blockscale) {
                        q = number(0);
                        k = number(quant.k_descale.offset(4, hk, 0, 0));
                        v = number(quant.v_descale.offset(4, hk, 0, 0));
                    }
                    if (scale == QScale::per_token_head) {
                        whole_v = number(quant.v_descale.offset(0, hk, 0, 0));
                        if (found.q_origin != quant.q_descale.offset(0, h, 0, 0) ||
                            found.k_origin != quant.k_descale.offset(0, hk, 0, 0))
                            return false;
                    }
                    if (found.q_at(quant, row) != q || found.k_at(quant, tile) != k ||
                        found.v_at(quant, tile) != v || found.v != whole_v)
                        return false;
                }
        }
    return true;
}

/// The last numbers end with a page of memory, behind which nothing may be read.
bool token_descales_are_right() {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    auto* const memory = static_cast<char*>(
        mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory == MAP_FAILED) return false;
    mprotect(memory + page, page, PROT_NONE);
    mprotect(memory + 3 * page, page, PROT_NONE);
    constexpr std::int64_t start_q = 2, row0 = 4, rows = 3, keys = 5, key0 = 8;
    constexpr std::int64_t queries = start_q + row0 + rows, tokens = 16;
    auto* const q = reinterpret_cast<float*>(memory + page) - queries;
    // Two pages of eight keys of which the second is the first in memory.
    auto* const k = reinterpret_cast<float*>(memory + 3 * page) - (tokens - (8 - keys));
    for (std::int64_t i = 0; i < queries; ++i) q[i] = static_cast<float>(i + 2);
    for (std::int64_t i = 0; i < tokens - (8 - keys); ++i) k[i] = static_cast<float>(i + 30);
    constexpr std::int32_t table[] = {0, 1};

    BatchPrefillArgs args;
    args.quant.q_descale.data = q;
    args.quant.q_descale.row_stride = 1;
    args.quant.k_descale.data = k;
    args.quant.k_descale.batch_stride = 8;
    args.quant.k_descale.row_stride = 1;
    TileContext ctx;
    ctx.config.signature.qscale = QScale::per_token_head;
    kernels::PrefillMatrices in{};
    in.pages.table = table;
    in.page_bits = 3;
    in.start_q = start_q;
    in.seqlen_q = row0 + rows;
    std::vector<float> scores(64, 1.0F);
    kernels::KeyTile tile;
    tile.first = key0;
    tile.end = key0 + keys;
    in.descale_tokens(ctx, scores, args, kernels::Descales{}, row0, tile, std::vector<float>{});
    bool right = true;
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < keys; ++c)
            right =
                right && scores[static_cast<std::size_t>(8 * r + c)] == q[start_q + row0 + r] * k[key0 + c];
    munmap(memory, 4 * page);
    return right;
}

namespace {

/// Rows are lists of eight numbers; Δ and LSE of a row are those of a table.
struct SinkContext : kernels::Decisions, kernels::BwdDecisions {
    using Rows = std::vector<float>;
    KernelConfig config;
    std::vector<float> deltas, lses;
    double sum = 0.0;
    struct Nothing {};
    std::int64_t at = 0;

    const KernelConfig& cfg() const { return config; }
    Rows rows() const { return Rows(4); }
    Nothing partial() const { return {}; }
    Nothing output() const { return {}; }
    void fill(Rows& rows, float value) const { rows.assign(4, value); }
    void load(Nothing&, const Matrix& matrix, std::int64_t row0, std::int64_t) {
        at = matrix.offset(row0, 0);
    }
    void load(Rows& rows, const Matrix& matrix, std::int64_t row0) const {
        for (std::int64_t r = 0; r < 4; ++r)
            rows[static_cast<std::size_t>(r)] =
                row0 + r < matrix.rows.size ? lses.at(static_cast<std::size_t>(matrix.offset(row0 + r, 0)))
                                            : 0.0F;
    }
    void add_row_products(Rows& rows, const Nothing&, const Nothing&) const {
        for (std::size_t r = 0; r < 4; ++r)
            rows[r] = static_cast<std::size_t>(at) + r < deltas.size()
                          ? deltas[static_cast<std::size_t>(at) + r]
                          : 0.0F;
    }
    template <class Change>
    void map_rows(Rows& to, const Rows& a, const Rows& b, Change change) const {
        for (std::size_t r = 0; r < 4; ++r) to[r] = change(a[r], b[r]);
    }
    float exp2(float x) const { return std::exp2(x); }
    void store_sum(float*, const Rows& rows, float sign) {
        for (const float row : rows) sum += sign * row;
    }
};

} // namespace

/// d_sink = −Σ Δ · exp(sink − LSE) over the rows that exist (W-10); rows without Δ have no part, for every LSE.
bool sink_gradient_is_right() {
    for (const std::int64_t keys : {1, 50})
        for (const std::int64_t rows : {3, 4, 9}) {
            SinkContext ctx;
            ctx.config = padded();
            const float deltas[] = {1.0F, -1.0F, 0.0F, 0.5F, 0.0F, 2.0F, -3.0F, 1.0F, -1.0F};
            double want = 0.0;
            const float sink = 2.0F;
            for (std::int64_t r = 0; r < rows; ++r) {
                const float delta = deltas[r],
                            lse = delta == 0.0F ? -INFINITY : 1.0F + static_cast<float>(r) / 4;
                ctx.deltas.push_back(delta);
                ctx.lses.push_back(lse);
                if (delta != 0.0F) want -= delta * std::exp(static_cast<double>(sink) - lse);
            }
            BwdArgs args;
            args.shape = {Mode::batch, 1, 1, 1, rows, keys, 0, 0, 8, 8};
            args.o.row_stride = args.d_o.row_stride = args.lse.row_stride = 1;
            args.score.sink_logit = &sink;
            float d_sink = 0.0F;
            args.d_sink = &d_sink;
            kernels::sink_gradient(ctx, args, 0);
            if (!(std::abs(ctx.sum - want) < 1e-4)) return false;
        }
    return true;
}

bool combined_sinks_are_right() {
    constexpr float logits[] = {1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F, 7.0F, 8.0F, 9.0F, 10.0F};
    for (const std::int64_t rows : {1, 2})
        for (const bool given : {false, true})
            for (const std::int64_t first : {0, 8}) {
                TileContext ctx;
                ctx.config = padded();
                SplitKvArgs args;
                args.shape = {Mode::batch, 1, 10, 5, rows, 9, 0, 0, 8, 8};
                args.score.sink_logit = given ? logits : nullptr;
                args.partials.num_splits = 2;
                const auto in = kernels::CombineMatrices::of(ctx, args, Entry{rows, 9, 0, 0},
                                                             kernels::CombineItem{0, first, 0, 0});
                for (int r = 0; r < kernels::combine_rows; ++r) {
                    // With one row an entry the rows are heads.
                    const std::int64_t head = rows == 1 ? first + r : first;
                    const float want = given && head < 10 ? logits[head] : kernels::never;
                    if (in.sink(r) != want) return false;
                }
            }
    return true;
}

} // namespace fmha::test
