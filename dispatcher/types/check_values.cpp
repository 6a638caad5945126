#include "dispatcher/types/check_values.hpp"

#include "dispatcher/types/check_lengths.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/type_classes.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace fmha {
namespace {

template <class T>
void require(bool good, const char* rule, const char* field, T value, const char* sentence) {
    if (!good)
        throw ProblemError(rule, field, fmt::format("{}", value),
                           fmt::format("{} is {}; {}", field, value, sentence));
}

/// Kernels compute scores in base 2, and no float holds log2(e) times a larger number.
constexpr float largest_soft_cap = 2.3586e38F;

std::int64_t blocks_of(std::int64_t length, std::int64_t size) {
    return length / size + (length % size != 0 ? 1 : 0);
}

/// Rows of descales of one entry: the first stored one and their number.
struct ScaleRows {
    std::int64_t first = 0, count = 0;
};

/// The rows of descales of the `length` rows of entry b, one for each `size` of them. In a packed batch they stand where the entry's
/// rows begin, `starts`, or where its blocks do.
ScaleRows rows_of(const Shape& shape, std::int64_t b, std::int64_t length, std::int64_t size,
                  const std::int32_t* starts, const std::int32_t* block_starts) {
    const std::int64_t count = blocks_of(length, size);
    if (shape.mode != Mode::group) return {0, count};
    return {size == 1 ? starts[b] : block_starts[b], count};
}

void check_rows(const char* name, const TensorView& view, std::int64_t b, std::int64_t heads, ScaleRows rows,
                std::int64_t columns) {
    for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t n = 0; n < rows.count; ++n)
            for (std::int64_t c = 0; c < columns; ++c)
                check_descale(name, view, view.offset(b, h, rows.first + n, c));
}

} // namespace

void check_values(DataType type, const ScoreArgs& score, const DropoutArgs& dropout, const QuantArgs& quant,
                  std::span<const std::int32_t> seqstart_k) {
    require(dropout.p_drop >= 0.0F && dropout.p_drop < 1.0F, "D-1", "p_drop", dropout.p_drop,
            "it must be in [0, 1)");
    require(score.logits_soft_cap >= 0.0F && score.logits_soft_cap <= largest_soft_cap, "C-1",
            "logits_soft_cap", score.logits_soft_cap,
            "it must be above 0 and at most 2.3586e38, which is finite in base 2, or 0 for none");
    require(std::isfinite(score.scale_s), "H-3", "scale_s", score.scale_s, "it must be finite");
    const bool scales_output = type == DataType::fp8 || type == DataType::bf8;
    require(std::isfinite(score.scale_o) && (scales_output || score.scale_o == 1.0F), "O-1", "scale_o",
            score.scale_o, "only fp8 and bf8 outputs are scaled, by a finite number");
    if (quant.qscale == QScale::blockscale) {
        require(quant.block_scale_size_q > 0, "Q-2", "block_scale_size_q", quant.block_scale_size_q,
                "it must be positive");
        require(quant.block_scale_size_k > 0, "Q-2", "block_scale_size_k", quant.block_scale_size_k,
                "it must be positive");
    }
    check_starts(type, seqstart_k);
}

void check_starts(DataType type, std::span<const std::int32_t> seqstart_k) {
    if (!packs_keys(type)) return;
    for (const std::int32_t start : seqstart_k)
        require(start % 2 == 0, "T-2", "seqstart_k", start,
                "packed fp4 values of V run along the keys, so that every entry begins at an even key");
}

void check_sink_logits(const ScoreArgs& score, std::int64_t nhead_q) {
    if (score.sink_logit == nullptr) return;
    constexpr float absent = -std::numeric_limits<float>::infinity();
    for (std::int64_t h = 0; h < nhead_q; ++h) {
        const float logit = score.sink_logit[h];
        require(std::isfinite(logit) || logit == absent, "K-5", "sink_logit", logit,
                "it must be finite, or -inf for a head without one");
    }
}

void check_descale(const char* name, const TensorView& view, std::int64_t offset) {
    const auto* bytes = static_cast<const unsigned char*>(view.data) + element_bytes(view.type, offset);
    if (view.type == ElementType::e8m0) {
        require(*bytes != 0xFFU, "Q-6", name, "0xFF (NaN)", "a block scale must be a number");
        return;
    }
    float scale = 0.0F;
    std::memcpy(&scale, bytes, sizeof scale);
    require(std::isfinite(scale) && scale > 0.0F, "Q-6", name, scale, "a descale must be finite and above 0");
}

void check_block_starts(const FwdArgs& args) {
    const QuantArgs& quant = args.quant;
    const bool by_block = quant.qscale == QScale::blockscale;
    if (args.shape.mode != Mode::group || (!by_block && quant.qscale != QScale::mx)) return;
    const auto check = [&](const char* name, const std::int32_t* blocks, const std::int32_t* starts,
                           std::int64_t size) {
        std::int64_t begin = 0;
        for (std::int64_t b = 0; b < args.shape.batch; ++b) {
            if (blocks[b] != begin)
                throw ProblemError(
                    "Q-2", name, blocks[b],
                    fmt::format(
                        "{} is {}; entry {} begins behind the {} scale blocks of the entries before it", name,
                        blocks[b], b, begin));
            begin += blocks_of(std::int64_t{starts[b + 1]} - starts[b], size);
        }
    };
    if (by_block)
        check("block_scale_seqstart_q", quant.block_scale_seqstart_q, args.lengths.seqstart_q,
              quant.block_scale_size_q);
    check("block_scale_seqstart_k", quant.block_scale_seqstart_k, args.lengths.seqstart_k,
          by_block ? quant.block_scale_size_k : 32);
}

void check_descales(const FwdArgs& args) {
    const QuantArgs& quant = args.quant;
    const Shape& shape = args.shape;
    if (quant.qscale == QScale::pertensor) {
        check_descale("q_descale", quant.q_descale, 0);
        check_descale("k_descale", quant.k_descale, 0);
        check_descale("v_descale", quant.v_descale, 0);
        return;
    }
    const bool by_block = quant.qscale == QScale::blockscale;
    if (!by_block && quant.qscale != QScale::mx) return;
    for (std::int64_t b = 0; b < shape.batch; ++b) {
        const std::int64_t columns = by_block ? 1 : blocks_of(shape.hdim_q, 32);
        const std::int64_t queries = query_length(shape, args.lengths, b),
                           keys = key_length(shape, args.lengths, b);
        const auto key_rows = [&](std::int64_t size) {
            return rows_of(shape, b, keys, size, args.lengths.seqstart_k, quant.block_scale_seqstart_k);
        };
        const ScaleRows q = rows_of(shape, b, queries, by_block ? quant.block_scale_size_q : 1,
                                    args.lengths.seqstart_q, quant.block_scale_seqstart_q);
        const ScaleRows k = key_rows(by_block ? quant.block_scale_size_k : 1);
        const ScaleRows v = key_rows(by_block ? quant.block_scale_size_k : 32);
        check_rows("q_descale", quant.q_descale, b, shape.nhead_q, q, columns);
        check_rows("k_descale", quant.k_descale, b, shape.nhead_k, k, columns);
        check_rows("v_descale", quant.v_descale, b, shape.nhead_k, v, by_block ? 1 : shape.hdim_v);
    }
}

} // namespace fmha
