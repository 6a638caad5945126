#include "parity/side_by_side/tile_example.hpp"

#include "dispatcher/types/family_traits.hpp"
#include "harness/cases/cache_case.hpp"
#include "harness/cases/mask_text.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>

namespace fmha::parity {
namespace {

using harness::Case;

bool uniform(const std::vector<std::int64_t>& lengths) {
    return std::all_of(lengths.begin(), lengths.end(), [&](std::int64_t n) { return n == lengths.front(); });
}

/// One value an entry.
std::string per_entry(const std::vector<std::int64_t>& lengths, std::int64_t batch) {
    if (lengths.size() > 1) return fmt::format("{}", fmt::join(lengths, ","));
    return fmt::format(
        "{}", fmt::join(std::vector<std::int64_t>(static_cast<std::size_t>(batch), lengths.front()), ","));
}

std::string_view qscale_text(QScale scale) {
    switch (scale) {
    case QScale::pertensor:
        return "pt";
    case QScale::blockscale:
        return "bs";
    case QScale::mx:
        return "mx";
    default:
        return "n";
    }
}

/// A sentence about the field that no option of the programs can say; empty when all is said.
std::string unsaid(const Case& c) {
    const ApiTraits& api = traits_of(c.family);
    if (api.lists_pages) return "no example program computes batch prefill";
    if (c.split.stage == harness::SplitStage::combine)
        return "the programs have no option for the second stage alone";
    if (api.splits_keys && c.split.num_splits == 1) return "one split is forward there";
    if (c.data_type == DataType::bf8) return "the programs have no data type bf8";
    if (api.gradients && c.data_type != DataType::fp32 && c.data_type != DataType::fp16 &&
        c.data_type != DataType::bf16)
        return "backward has no such data type there";
    if (c.mask == MaskType::window_generic)
        return "upstream reads g:y,x in three ways that contradict one another (M-7)";
    if (c.sink_logits != harness::SinkLogits::none) return "the programs draw sink logits of their own";
    if (c.min_seqlen_q > 0) return "the programs have no option for min_seqlen_q";
    if (c.scale_o != 1.0) return "the programs choose scale_o themselves";
    if (c.qscale == QScale::kv_blockscale || c.qscale == QScale::per_token_head)
        return "only batch prefill has such descales";
    if (c.qscale == QScale::blockscale && (c.block_scale_q != 128 || c.block_scale_k != 128))
        return "the programs choose the sizes of blocks themselves";
    if (!c.wide_tensor.empty()) return "the programs pack their tensors";
    if (c.cache.gappy || c.cache.shared_pages > 0) return "the programs choose where pages lie themselves";
    if (api.reads_cache && !(uniform(c.seqlen_q) && uniform(c.seqlen_k)))
        return "the programs draw the lengths of a cache themselves";
    if (c.length_form_q == harness::LengthForm::both || c.length_form_k == harness::LengthForm::both)
        return "the programs never give lengths in two forms";
    if (c.backward.reduce_dk_dv) return "backward writes dK and dV of every query head there";
    if (api.gradients && c.mode == Mode::batch && !(uniform(c.seqlen_q) && uniform(c.seqlen_k)))
        return "backward has no lengths of single entries in batch mode there";
    return {};
}

class Arguments {
  public:
    template <class T>
    void add(std::string_view name, const T& value) {
        list_.push_back(fmt::format("-{}={}", name, value));
    }
    void flag(std::string_view name, bool on) { add(name, on ? 1 : 0); }
    std::vector<std::string> take() { return std::move(list_); }

  private:
    std::vector<std::string> list_;
};

/// Lengths: a list in group mode; in batch mode the extent, and beside it the lengths of entries.
void add_lengths(Arguments& to, const Case& c) {
    const std::int64_t more = traits_of(c.family).stores_keys ? c.append.seqlen_knew : 0;
    std::vector<std::int64_t> keys = c.seqlen_k;
    for (std::int64_t& n : keys) n += more;
    if (c.mode == Mode::group) {
        to.add("s", per_entry(c.seqlen_q, c.batch));
        to.add("s_k", per_entry(keys, c.batch));
        if (!c.physical_q.empty()) to.add("s_qpad", per_entry(c.physical_q, c.batch));
        if (!c.physical_k.empty()) to.add("s_kpad", per_entry(c.physical_k, c.batch));
        return;
    }
    const auto side = [&](std::string_view name, std::string_view effective,
                          const std::vector<std::int64_t>& logical,
                          const std::vector<std::int64_t>& physical) {
        const auto& extent = physical.empty() ? logical : physical;
        const std::int64_t most = *std::max_element(extent.begin(), extent.end());
        to.add(name, most);
        if (!uniform(logical) || logical.front() != most) to.add(effective, per_entry(logical, c.batch));
    };
    side("s", "q_eff_lens", c.seqlen_q, c.physical_q);
    side("s_k", "kv_eff_lens", keys, c.physical_k);
}

} // namespace

TileExample tile_example(const Case& c) {
    const ApiTraits& api = traits_of(c.family);
    const bool backward = api.gradients;
    TileExample example{.program = backward ? "tile_example_fmha_bwd" : "tile_example_fmha_fwd",
                        .arguments = {},
                        .cannot = unsaid(c)};
    if (!example.cannot.empty()) return example;
    Arguments to;
    to.flag("v", true);
    to.flag("mode", c.mode == Mode::group);
    to.add("b", c.batch);
    to.add("h", c.nhead_q);
    to.add("h_k", c.nhead_k);
    add_lengths(to, c);
    to.add("d", c.hdim_q);
    to.add("d_v", c.hdim_v);
    to.add(backward ? "scale" : "scale_s", c.scale_s);
    to.flag("iperm", c.iperm == harness::Layout::bhsd);
    to.flag("operm", c.operm == harness::Layout::bhsd);
    to.add("bias", c.bias == BiasType::no_bias
                       ? std::string("n")
                       : fmt::format("{}:{}", c.bias == BiasType::alibi ? 'a' : 'e', c.bias_rank));
    to.add("prec", to_string(c.data_type));
    to.add("mask", harness::mask_text({c.mask, c.window_left, c.window_right, c.sink_size}));
    to.add("p_drop", c.p_drop);
    to.add("drop_seed", c.dropout_seed);
    to.add("drop_offset", c.dropout_offset);
    if (backward) {
        to.flag("dbias", c.backward.dbias);
        to.flag("deterministic", c.backward.deterministic);
    } else {
        to.add("vlayout", c.v_layout == VLayout::row ? 'r' : 'c');
        to.flag("lse", c.lse);
        to.add("qscale", qscale_text(c.qscale));
        to.add("logits_soft_cap", c.logits_soft_cap);
        to.add("num_splits", api.splits_keys ? c.split.num_splits : 1);
        to.add("page_block_size", c.cache.page_size);
        to.flag("cache_batch_idx", c.cache.cache_batch_idx);
    }
    if (api.stores_keys) {
        to.add("s_knew", c.append.seqlen_knew);
        to.add("rotary_dim", rotary_dim_of(c));
        to.flag("rotary_interleaved", c.append.rope == Rope::interleaved);
    }
    to.add("init", c.fill == harness::Fill::normal && !backward ? "nf" : "uf");
    to.add("seed", c.seed % 0x7FFFFFFF + 1); // 0 would ask for another one every time
    to.flag("kname", true);
    to.add("warmup", 1);
    to.add("repeat", 5);
    example.arguments = to.take();
    return example;
}

namespace {

std::string_view last_line(std::string_view text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
    const auto start = text.rfind('\n');
    return start == std::string_view::npos ? text : text.substr(start + 1);
}

/// The number before " ms", −1 without one.
double milliseconds(std::string_view text) {
    const auto end = text.find(" ms,");
    if (end == std::string_view::npos) return -1.0;
    const auto start = text.find_last_of(" ,", end - 1);
    double value = -1.0;
    const auto number = text.substr(start + 1, end - start - 1);
    const auto read = std::from_chars(number.data(), number.data() + number.size(), value);
    return read.ec == std::errc() ? value : -1.0;
}

} // namespace

Answer read_answer(const system::ProcessResult& result, std::chrono::seconds limit) {
    Answer answer;
    answer.line = last_line(result.out);
    answer.milliseconds = milliseconds(result.out);
    const auto says = [&](std::string_view text) { return result.out.find(text) != std::string::npos; };
    const std::string_view complaint = last_line(result.err);
    if (result.timed_out) {
        answer.verdict = Verdict::timed_out;
        answer.sentence = fmt::format("it did not end within {} s", limit.count());
    } else if (result.exit_code > 128 && result.exit_code < 128 + 65) {
        answer.verdict = Verdict::crashed;
        answer.sentence = fmt::format("signal {} ended it{}{}", result.exit_code - 128,
                                      complaint.empty() ? "" : ": ", complaint);
    } else if (says("not supported yet")) {
        answer.verdict = Verdict::declined;
        answer.sentence = "it has no kernel for this";
    } else if (says("valid:n")) {
        answer.verdict = Verdict::wrong;
        answer.sentence = fmt::format("its own reference says that it is wrong{}{}",
                                      complaint.empty() ? "" : ": ", complaint);
    } else if (says("valid:y") && result.exit_code == 0) {
        answer.verdict = Verdict::right;
    } else if (result.exit_code != 0) {
        const bool refused = result.err.find("nvalid argument") != std::string::npos ||
                             result.err.find("Unsupported") != std::string::npos;
        answer.verdict = refused ? Verdict::declined : Verdict::crashed;
        answer.sentence = fmt::format("it ended with exit code {}{}{}", result.exit_code,
                                      complaint.empty() ? "" : ": ", complaint);
    } else {
        answer.sentence = "it ended well and said neither valid:y nor valid:n";
    }
    return answer;
}

} // namespace fmha::parity
