#include "backward_problem.hpp"

#include "reference/backward.hpp"
#include "reference/numerics/formats.hpp"
#include "tests/kernels/normal_numbers.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>

namespace fmha::test {
namespace {

constexpr float never = -std::numeric_limits<float>::infinity();

void put(const TensorView& view, std::int64_t element, double value) {
    const std::uint32_t code = view.type == ElementType::uint8 ? static_cast<std::uint32_t>(value)
                                                               : reference::encode(view.type, value);
    const auto size = static_cast<std::size_t>(element_bits(view.type) / 8);
    std::memcpy(static_cast<std::byte*>(view.data) + static_cast<std::size_t>(element) * size, &code, size);
}

std::vector<std::int32_t> sums_of(const std::vector<std::int64_t>& lengths) {
    std::vector<std::int32_t> sums{0};
    for (const std::int64_t n : lengths) sums.push_back(sums.back() + static_cast<std::int32_t>(n));
    return sums;
}

std::string list(const std::vector<std::int64_t>& values) {
    std::string text;
    for (const std::int64_t n : values) text += (text.empty() ? "" : ",") + std::to_string(n);
    return text;
}

} // namespace

std::string BackwardSpec::text() const {
    std::string text = "batch " + std::to_string(batch) + " heads " + std::to_string(heads) + '/' +
                       std::to_string(kv_heads) + " hdim " + std::to_string(hdim_q) + '/' +
                       std::to_string(hdim_v) + " sq " + list(seqlen_q) + " sk " + list(seqlen_k);
    if (!logical_q.empty()) text += " logical sq " + list(logical_q);
    if (!logical_k.empty()) text += " logical sk " + list(logical_k);
    text += " mask " + std::string(to_string(mask.type)) + ' ' + std::to_string(mask.left) + ',' +
            std::to_string(mask.right) + " p_drop " + std::to_string(p_drop) + " sinks " +
            std::to_string(static_cast<int>(sinks)) + " units " + std::to_string(compute_units);
    return text + (reduce_dk_dv ? " reduced" : "") + (rows_outermost ? " rows outermost" : "") + " gap " +
           std::to_string(gap) + " seed " + std::to_string(seed);
}

BackwardProblem::BackwardProblem(const BackwardChain& chain, const BackwardSpec& spec)
    : chain_(chain), spec_(spec) {
    const Signature& s = chain.main.signature;
    if (spec_.hdim_q == 0) spec_.hdim_q = s.hdim_q;
    if (spec_.hdim_v == 0) spec_.hdim_v = s.hdim_v;
    args_.shape = {s.mode, spec_.batch, spec_.heads, spec_.kv_heads, 0, 0, 0, 0, spec_.hdim_q, spec_.hdim_v};
    lay_out_lengths();
    args_.score.scale_s = 1.0F / std::sqrt(static_cast<float>(spec_.hdim_q));
    args_.score.bias_type = s.bias;
    if (s.mask != MaskClass::none) args_.mask = spec_.mask;
    if (s.has_dropout) args_.dropout = {spec_.p_drop, 7 + spec_.seed, 64};
    args_.deterministic = s.is_deterministic;
    args_.reduce_dk_dv = spec_.reduce_dk_dv;
    std::mt19937_64 engine(spec_.seed);
    draw(engine);
    lay_out_workspace();
    reset();
}

void BackwardProblem::lay_out_lengths() {
    const bool group = args_.shape.mode == Mode::group;
    const auto of_entries = [&](const std::vector<std::int64_t>& given, std::vector<std::int64_t>& to,
                                bool one) {
        for (std::int64_t b = 0; b < spec_.batch; ++b)
            to.push_back(given[one ? 0 : static_cast<std::size_t>(b) % given.size()]);
    };
    of_entries(spec_.seqlen_q, physical_q_, !group);
    of_entries(spec_.seqlen_k, physical_k_, !group);
    const auto keep = [&](std::vector<std::int32_t> values) {
        return ints_.emplace_back(std::move(values)).data();
    };
    LengthArrays& lengths = args_.lengths;
    const auto side = [&](const std::vector<std::int64_t>& given, const std::vector<std::int64_t>& physical,
                          std::vector<std::int64_t>& logical, const std::int32_t*& plain,
                          const std::int32_t*& sums) {
        logical = physical;
        if (given.empty()) return;
        for (std::size_t b = 0; b < logical.size(); ++b)
            logical[b] = std::min(physical[b], given[b % given.size()]);
        if (spec_.cumulative)
            sums = keep(sums_of(logical));
        else
            plain = keep({logical.begin(), logical.end()});
    };
    side(spec_.logical_q, physical_q_, logical_q_, lengths.seqlen_q, lengths.cu_seqlen_q);
    side(spec_.logical_k, physical_k_, logical_k_, lengths.seqlen_k, lengths.cu_seqlen_k);
    Shape& shape = args_.shape;
    shape.seqlen_q = physical_q_.front();
    shape.seqlen_k = physical_k_.front();
    shape.max_seqlen_q = std::max<std::int64_t>(1, *std::ranges::max_element(logical_q_));
    if (!group) return;
    lengths.seqstart_q = keep(sums_of(physical_q_));
    lengths.seqstart_k = keep(sums_of(physical_k_));
}

std::int64_t BackwardProblem::start(std::int64_t b, bool keys) const {
    if (args_.shape.mode != Mode::group) return 0;
    return (keys ? args_.lengths.seqstart_k : args_.lengths.seqstart_q)[b];
}

BackwardProblem::Memory& BackwardProblem::memory(ElementType type, std::int64_t heads, std::int64_t cols,
                                                 bool keys, bool pairs) {
    const bool group = args_.shape.mode == Mode::group;
    const std::vector<std::int64_t>& physical = keys ? physical_k_ : physical_q_;
    const std::int64_t rows =
        group ? std::accumulate(physical.begin(), physical.end(), std::int64_t{0}) : physical.front();
    const std::int64_t batch = group ? 1 : spec_.batch, line = cols + spec_.gap;
    Memory& out = memories_.emplace_back();
    out.heads = heads;
    out.cols = cols;
    out.keys = keys;
    out.pairs = pairs;
    out.view.type = type;
    out.view.row_stride = spec_.rows_outermost ? heads * line : line;
    out.view.head_stride = spec_.rows_outermost ? line : rows * line;
    out.view.batch_stride = group ? 0 : heads * rows * line;
    out.bytes.assign(static_cast<std::size_t>(element_bytes(type, batch * heads * rows * line + 2 * guard)),
                     std::byte{0xFF});
    out.view.data = out.bytes.data() + element_bytes(type, guard);
    return out;
}

void BackwardProblem::draw(std::mt19937_64& engine) {
    const Signature& s = chain_.main.signature;
    const ElementTypes types = element_types(s.data_type, fp8_flavour(chain_.main.arch));
    NormalNumbers normal;
    const std::int64_t longest = *std::ranges::max_element(logical_k_);
    const auto fill = [&](const Memory& to, std::int64_t heads, const std::function<double()>& value) {
        for (std::int64_t b = 0; b < spec_.batch; ++b)
            for (std::int64_t h = 0; h < heads; ++h)
                for (std::int64_t r = 0; r < (to.keys ? logical_k_ : logical_q_)[static_cast<std::size_t>(b)];
                     ++r)
                    for (std::int64_t c = 0;
                         c < (to.pairs ? logical_k_[static_cast<std::size_t>(b)] : to.cols); ++c)
                        put(to.view, to.view.offset(b, h, start(b, to.keys) + r, c), value());
    };
    const auto input = [&](ElementType type, std::int64_t heads, std::int64_t cols, bool keys,
                           const std::function<double()>& value, bool pairs = false) {
        const Memory& to = memory(type, heads, cols, keys, pairs);
        fill(to, heads, value);
        return to.view;
    };
    const auto gaussian = [&] { return normal(engine); };
    args_.q = input(types.q, spec_.heads, spec_.hdim_q, false, gaussian);
    args_.k = input(types.k, spec_.kv_heads, spec_.hdim_q, true, gaussian);
    args_.v = input(types.v, spec_.kv_heads, spec_.hdim_v, true, gaussian);
    args_.d_o = input(types.o, spec_.heads, spec_.hdim_v, false, gaussian);
    if (s.bias == BiasType::elementwise) {
        Memory& bias = memory(types.bias, spec_.heads, longest, false, true);
        if (spec_.bias_rank < 1) bias.view.head_stride = 0;
        if (spec_.bias_rank < 2) bias.view.batch_stride = 0;
        fill(bias, spec_.heads, [&] { return engine() % 16 == 0 ? double{never} : normal(engine); });
        args_.bias = bias.view;
    }
    if (s.bias == BiasType::alibi) {
        for (std::int64_t h = 0; h < spec_.heads; ++h)
            slopes_.push_back(spec_.slope / static_cast<float>(h + 1) * (h % 4 == 3 ? -1.0F : 1.0F));
        args_.score.alibi_slopes = slopes_.data();
    }
    for (std::int64_t h = 0; h < spec_.heads && spec_.sinks != BackwardSinks::none; ++h) {
        const auto x = static_cast<float>(normal(engine));
        sinks_.push_back(spec_.sinks == BackwardSinks::high ? 45.0F + 5.0F * x : h % 3 == 2 ? never : x);
    }
    if (!sinks_.empty()) {
        args_.score.sink_logit = sinks_.data();
        d_sink_.assign(sinks_.size() + 2, 0.0F);
        args_.d_sink = d_sink_.data() + 1;
    }
    if (s.is_store_randval && args_.dropout.p_drop > 0.0F)
        args_.randval = input(
            ElementType::uint8, spec_.heads, longest, false,
            [&] { return static_cast<double>(engine() & 0xFFU); }, true);

    const Memory& o = memory(types.o, spec_.heads, spec_.hdim_v, false);
    const Memory& lse = memory(ElementType::fp32, spec_.heads, 1, false);
    const FwdArgs forward = reference::forward_part(args_);
    const auto rows = reference::all_rows(args_);
    const reference::ForwardRows result =
        reference::forward(forward, rows, {.companions = false, .numerics = {}, .threads = 1});
    for (std::size_t n = 0; n < rows.size(); ++n) {
        const auto [b, h, i] = rows[n];
        const auto r = static_cast<std::int64_t>(n);
        put(lse.view, lse.view.offset(b, h, start(b, false) + i, 0), result.lse(r));
        for (std::int64_t c = 0; c < spec_.hdim_v; ++c)
            put(o.view, o.view.offset(b, h, start(b, false) + i, c), result.o(r, c));
    }
    args_.o = o.view;
    args_.lse = lse.view;
    const auto output = [&](ElementType type, std::int64_t cols, bool keys, bool pairs = false) {
        Memory& to =
            memory(type, keys && spec_.reduce_dk_dv ? spec_.kv_heads : spec_.heads, cols, keys, pairs);
        outputs_.push_back(&to);
        return to.view;
    };
    args_.d = output(ElementType::fp32, 1, false);
    args_.dq = output(types.q, spec_.hdim_q, false);
    args_.dk = output(types.k, spec_.hdim_q, true);
    args_.dv = output(types.v, spec_.hdim_v, true);
    if (s.has_dbias) args_.dbias = output(types.bias, longest, false, true);
}

void BackwardProblem::lay_out_workspace() {
    BwdWorkspaceInputs in;
    in.group = args_.shape.mode == Mode::group;
    in.deterministic = args_.deterministic;
    in.direct_dq = chain_.direct();
    in.masked = args_.mask.type != MaskType::no_mask;
    in.batch = spec_.batch;
    in.nhead_q = spec_.heads;
    if (spec_.reduce_dk_dv) in.heads_of_job = spec_.heads / spec_.kv_heads;
    in.hdim_q = spec_.hdim_q;
    in.seqlen_q = args_.shape.seqlen_q;
    in.seqlen_k = args_.shape.seqlen_k;
    in.keys_may_be_shorter = logical_k_ != physical_k_ || std::ranges::count(logical_k_, 0) > 0;
    in.key_tile = chain_.main.algorithm.tile.n0;
    in.compute_units = spec_.compute_units;
    if (in.group) {
        in.physical_q = physical_q_;
        in.physical_k = physical_k_;
    }
    layout_ = bwd_workspace_layout(in);
    workspace_.resize(static_cast<std::size_t>(layout_.size.bytes) + 2 * canary + 16);
    if (!in.direct_dq) args_.workspace = workspace().data();
}

std::span<std::byte> BackwardProblem::workspace() {
    const auto address = reinterpret_cast<std::uintptr_t>(workspace_.data() + canary);
    return std::span(workspace_)
        .subspan(canary + (16 - address % 16) % 16, static_cast<std::size_t>(layout_.size.bytes));
}

void BackwardProblem::reset(std::byte poison) {
    poison_ = poison;
    for (Memory* memory : outputs_) std::ranges::fill(memory->bytes, poison);
    std::memset(d_sink_.data(), static_cast<int>(poison), d_sink_.size() * sizeof(float));
    std::ranges::fill(workspace_, poison);
    layout_.prepare(workspace());
}

void BackwardProblem::run(const std::function<void(const KernelConfig&, const BwdArgs&)>& launch) const {
    launch(chain_.dot, args_);
    launch(chain_.main, args_);
    if (!chain_.direct()) launch(chain_.convert, args_);
}

std::vector<std::byte> BackwardProblem::outputs() const {
    std::vector<std::byte> all;
    for (const Memory* memory : outputs_) all.insert(all.end(), memory->bytes.begin(), memory->bytes.end());
    const auto* sink = reinterpret_cast<const std::byte*>(d_sink_.data());
    all.insert(all.end(), sink, sink + d_sink_.size() * sizeof(float));
    return all;
}

std::vector<double> BackwardProblem::output_values() const {
    std::vector<double> all;
    for (const Memory* memory : outputs_) {
        const auto size = static_cast<std::size_t>(element_bytes(memory->view.type, 1));
        for (std::size_t at = 0; at < memory->bytes.size(); at += size) {
            std::uint32_t code = 0;
            std::memcpy(&code, memory->bytes.data() + at, size);
            all.push_back(reference::decode(memory->view.type, code));
        }
    }
    all.insert(all.end(), d_sink_.begin(), d_sink_.end());
    return all;
}

} // namespace fmha::test
