#include "tests/harness/random_case.hpp"

#include "harness/fuzz/draw.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace fmha::harness::test {
namespace {

constexpr std::uint64_t stream = 99;

bool edges_decide(const Case& c) {
    const bool mx = c.qscale == QScale::mx;
    const std::int64_t ranks = mx ? 1LL << 2 * std::min<std::int64_t>(c.hdim_q / 32, 4) : 256;
    return c.bias == BiasType::no_bias && c.logits_soft_cap == 0.0 && c.p_drop == 0.0 &&
           c.sink_logits == SinkLogits::none && std::ranges::max(c.seqlen_k) <= ranks;
}

} // namespace

Case random_case(std::uint64_t seed) {
    Draw draw(seed, stream);
    Case c;
    c.id = fmt::format("random/{}@{}", seed, seed);
    c.about = "a random correct problem";
    c.seed = seed;
    c.data_type =
        draw.any({DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp8bf16, DataType::fp8,
                  DataType::fp8fp32, DataType::fp16, DataType::bf16, DataType::mxfp8, DataType::mxfp4});
    const bool fp8 =
        c.data_type == DataType::fp8 || c.data_type == DataType::fp8bf16 || c.data_type == DataType::fp8fp32;
    const bool mx = c.data_type == DataType::mxfp8 || c.data_type == DataType::mxfp4;
    c.mode = draw.one_in(2) ? Mode::group : Mode::batch;
    c.batch = draw.between(1, 3);
    c.nhead_k = draw.between(1, 2);
    c.nhead_q = c.nhead_k * draw.between(1, 3);
    c.hdim_q = mx ? 32 * draw.between(1, 4) : 8 * draw.between(1, 20);
    c.hdim_v = draw.one_in(3) ? 8 * draw.between(1, 20) : c.hdim_q;
    c.seqlen_q.clear();
    c.seqlen_k.clear();
    const bool varied = c.mode == Mode::group || draw.one_in(3);
    for (std::int64_t b = 0; b < (varied ? c.batch : 1); ++b) {
        c.seqlen_q.push_back(draw.between(varied ? 0 : 1, 150));
        c.seqlen_k.push_back(draw.one_in(12) ? 0 : draw.between(1, 300));
        if (c.data_type == DataType::mxfp4) c.seqlen_k.back() += c.seqlen_k.back() % 2;
    }
    if (*std::max_element(c.seqlen_q.begin(), c.seqlen_q.end()) == 0) c.seqlen_q.front() = 5;
    if (*std::max_element(c.seqlen_k.begin(), c.seqlen_k.end()) == 0) c.seqlen_k.front() = 8;
    if (varied) {
        const bool padded = draw.one_in(2);
        if (c.mode == Mode::batch || padded) {
            c.length_form_q = c.length_form_k = draw.one_in(2) ? LengthForm::seqlen : LengthForm::cu_seqlen;
            for (std::size_t b = 0; b < c.seqlen_q.size(); ++b) {
                c.physical_q.push_back(c.seqlen_q[b] + draw.between(0, 20));
                c.physical_k.push_back(c.seqlen_k[b] + 2 * draw.between(0, 10));
            }
        }
        if (c.mode == Mode::group && draw.one_in(6)) c.min_seqlen_q = draw.between(1, 20);
    }
    c.iperm = draw.one_in(2) ? Layout::bhsd : Layout::bshd;
    c.operm = draw.one_in(2) ? Layout::bhsd : Layout::bshd;
    c.v_layout = mx || draw.one_in(5) ? VLayout::column : VLayout::row;
    c.stride_padding = draw.any({std::int64_t{0}, std::int64_t{8}, std::int64_t{16}});

    switch (draw.between(0, 6)) {
    case 0:
    case 1:
        break;
    case 2:
        c.mask = MaskType::top_left;
        c.window_right = 0;
        break;
    case 3:
        c.mask = MaskType::bottom_right;
        c.window_right = 0;
        break;
    case 4:
    case 5:
        c.mask = draw.one_in(2) ? MaskType::top_left : MaskType::bottom_right;
        c.window_left = draw.between(0, 90);
        c.window_right = draw.between(-1, 40);
        c.sink_size = draw.one_in(3) ? draw.between(1, 9) : 0;
        break;
    default:
        c.mask = MaskType::window_generic;
        c.window_left = draw.between(0, 90);
        c.window_right = draw.between(0, 40);
    }
    switch (draw.between(0, 5)) {
    case 0:
        c.bias = BiasType::elementwise;
        c.bias_rank = static_cast<int>(draw.between(0, 2));
        break;
    case 1:
        c.bias = BiasType::alibi;
        c.bias_rank = static_cast<int>(draw.between(0, 1));
        c.negative_slopes = draw.one_in(4);
        break;
    case 2:
        c.logits_soft_cap = draw.any({5.0, 30.0, 50.0});
        break;
    default:
        break;
    }
    c.lse = !draw.one_in(8);
    if (!mx && draw.one_in(4)) {
        c.p_drop = draw.any({0.1, 0.25, 0.5});
        c.dropout_seed = static_cast<std::uint64_t>(draw.between(0, 1LL << 60));
        c.dropout_offset = static_cast<std::uint64_t>(draw.between(0, 1LL << 40));
        c.store_randval = draw.one_in(2);
    }
    if (draw.one_in(5)) c.sink_logits = draw.one_in(2) ? SinkLogits::normal : SinkLogits::saturated;
    if (mx) c.qscale = QScale::mx;
    if (fp8) c.qscale = draw.any({QScale::no_scale, QScale::pertensor, QScale::blockscale});
    if (c.data_type == DataType::fp8) c.scale_o = draw.any({1.0, 16.0, 100.0});
    c.fill = draw.any({Fill::normal, Fill::normal, Fill::sharp, Fill::indexed, Fill::zeros, Fill::huge,
                       Fill::uniform, Fill::integers, Fill::rising, Fill::edge_last, Fill::edge_first,
                       Fill::heavy_tailed, Fill::shifted});
    // An edge fill that can decide no row is an error, so it is for cases in which a key wins alone and has a rank of its own.
    if ((c.fill == Fill::edge_last || c.fill == Fill::edge_first) && !edges_decide(c)) c.fill = Fill::normal;
    c.repeats = 2;
    return c;
}

} // namespace fmha::harness::test
