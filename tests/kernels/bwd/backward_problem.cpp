#include "backward_problem.hpp"

#include "reference/backward.hpp"
#include "reference/numerics/formats.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <numeric>

namespace fmha::test {
namespace {

constexpr float never = -std::numeric_limits<float>::infinity();
constexpr std::int64_t guard = 256; // elements before and behind a tensor
constexpr std::size_t canary = 64;  // bytes before and behind the workspace

void put(const TensorView& view, std::int64_t element, double value) {
    const std::uint32_t code = view.type == ElementType::uint8 ? static_cast<std::uint32_t>(value)
                                                               : reference::encode(view.type, value);
    const auto size = static_cast<std::size_t>(element_bits(view.type) / 8);
    std::memcpy(static_cast<std::byte*>(view.data) + static_cast<std::size_t>(element) * size, &code, size);
}

double stored(const TensorView& view, std::int64_t element) {
    std::uint32_t code = 0;
    const auto size = static_cast<std::size_t>(element_bits(view.type) / 8);
    std::memcpy(&code, static_cast<const std::byte*>(view.data) + static_cast<std::size_t>(element) * size,
                size);
    return reference::decode(view.type, code);
}

std::vector<std::int32_t> sums_of(const std::vector<std::int64_t>& lengths) {
    std::vector<std::int32_t> sums{0};
    for (const std::int64_t n : lengths) sums.push_back(sums.back() + static_cast<std::int32_t>(n));
    return sums;
}

std::string number(double x) {
    std::array<char, 32> digits{};
    std::snprintf(digits.data(), digits.size(), "%.9g", x);
    return digits.data();
}

std::string list(const std::vector<std::int64_t>& values) {
    std::string text;
    for (const std::int64_t n : values) text += (text.empty() ? "" : ",") + std::to_string(n);
    return text;
}

/// Compares one gradient with its reference.
class Comparison {
  public:
    Comparison(const reference::Gradients& expected, const reference::GradientTable& table,
               reference::GradientBound::Stored stored, std::string name, BackwardVerdict& verdict)
        : expected_(expected), table_(table), stored_(stored), name_(std::move(name)), verdict_(verdict) {}

    void add(std::int64_t line, std::int64_t c, double got) {
        const reference::GradientBound bound(expected_, table_, line, stored_);
        const double want = bound.expected(c), difference = std::abs(got - want);
        if (bound.error(c) == 0.0 && want == 0.0 && got != 0.0) verdict_.zeros_exact = false;
        const double share = difference == 0.0 ? 0.0 : difference / bound.limit(c);
        squares_ += difference * difference;
        variance_ += bound.variance(c);
        ++count_;
        if (share <= worst_) return;
        worst_ = std::isnan(share) ? std::numeric_limits<double>::infinity() : share;
        text_ = name_ + "[" + std::to_string(line) + "," + std::to_string(c) + "] = " + number(got) +
                ", expected " + number(want) + " within " + number(bound.limit(c)) + "; ";
    }
    void finish(double& share, bool with_rms) {
        share = worst_;
        if (worst_ > 1.0) verdict_.worst += text_;
        double rms = variance_ > 0.0 ? std::sqrt(squares_ / variance_) : 0.0;
        if (count_ < 4096) rms /= 2.0;
        if (with_rms) verdict_.rms = std::max(verdict_.rms, rms);
    }

  private:
    const reference::Gradients& expected_;
    const reference::GradientTable& table_;
    reference::GradientBound::Stored stored_;
    std::string name_;
    BackwardVerdict& verdict_;
    double worst_ = 0.0, squares_ = 0.0, variance_ = 0.0;
    std::int64_t count_ = 0;
    std::string text_;
};

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

std::string BackwardVerdict::text() const {
    std::string text;
    for (const auto& [name, share] :
         {std::pair("d", d), std::pair("dq", dq), std::pair("dk", dk), std::pair("dv", dv),
          std::pair("dbias", dbias), std::pair("d_sink", d_sink), std::pair("rms", rms)})
        text += std::string(name) + ' ' + std::to_string(share) + ' ';
    return text + (zeros_exact ? "" : "zeros not written ") + (only_outputs_written ? "" : "stray writes ") +
           worst;
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
    std::normal_distribution<double> normal;
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
        const auto r = static_cast<Eigen::Index>(n);
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

bool BackwardProblem::unwritten_around(const Memory& memory) const {
    std::vector<std::byte> left = memory.bytes;
    const auto size = static_cast<std::size_t>(element_bits(memory.view.type) / 8);
    for (std::int64_t b = 0; b < spec_.batch; ++b)
        for (std::int64_t h = 0; h < memory.heads; ++h)
            for (std::int64_t r = 0; r < (memory.keys ? logical_k_ : logical_q_)[static_cast<std::size_t>(b)];
                 ++r) {
                const std::int64_t cols =
                    memory.pairs ? logical_k_[static_cast<std::size_t>(b)] : memory.cols;
                const auto at =
                    static_cast<std::size_t>(guard + memory.view.offset(b, h, start(b, memory.keys) + r, 0));
                std::fill_n(left.begin() + static_cast<std::ptrdiff_t>(at * size),
                            static_cast<std::size_t>(cols) * size, poison_);
            }
    return std::ranges::all_of(left, [&](std::byte x) { return x == poison_; });
}

BackwardVerdict BackwardProblem::judge(const Numerics& numerics) const {
    reference::GradientOptions options;
    options.numerics = numerics;
    options.threads = 1;
    options.dq_parts = (*std::ranges::max_element(physical_k_) / chain_.main.algorithm.tile.n0) + 1;
    const reference::GradientRequest request{reference::all_rows(args_), reference::all_keys(args_),
                                             args_.dbias.present(), args_.d_sink != nullptr};
    const reference::Gradients expected = reference::backward(args_, request, options);
    BackwardVerdict verdict;
    using Stored = reference::GradientBound::Stored;
    const bool with_rms = chain_.main.signature.data_type != DataType::fp32; // TF32 rounds all operands

    Comparison d(expected, expected.d, Stored::fp32, "d", verdict),
        dq(expected, expected.dq, Stored::tag, "dq", verdict),
        dbias(expected, expected.dbias, Stored::tag, "dbias", verdict);
    for (std::size_t n = 0; n < request.rows.size(); ++n) {
        const auto [b, h, i] = request.rows[n];
        const auto line = static_cast<std::int64_t>(n);
        const std::int64_t row = start(b, false) + i;
        d.add(line, 0, stored(args_.d, args_.d.offset(b, h, row, 0)));
        for (std::int64_t c = 0; c < spec_.hdim_q; ++c)
            dq.add(line, c, stored(args_.dq, args_.dq.offset(b, h, row, c)));
        for (std::int64_t j = 0; request.dbias && j < logical_k_[static_cast<std::size_t>(b)]; ++j)
            dbias.add(line, j, stored(args_.dbias, args_.dbias.offset(b, h, row, j)));
    }
    Comparison dk(expected, expected.dk, Stored::tag, "dk", verdict),
        dv(expected, expected.dv, Stored::tag, "dv", verdict);
    for (std::size_t n = 0; n < request.keys.size(); ++n) {
        const auto [b, h, j] = request.keys[n];
        const auto line = static_cast<std::int64_t>(n);
        const std::int64_t row = start(b, true) + j;
        for (std::int64_t c = 0; c < spec_.hdim_q; ++c)
            dk.add(line, c, stored(args_.dk, args_.dk.offset(b, h, row, c)));
        for (std::int64_t c = 0; c < spec_.hdim_v; ++c)
            dv.add(line, c, stored(args_.dv, args_.dv.offset(b, h, row, c)));
    }
    Comparison d_sink(expected, expected.d_sink, Stored::fp32, "d_sink", verdict);
    for (std::int64_t h = 0; request.d_sink && h < spec_.heads; ++h)
        d_sink.add(h, 0, double{args_.d_sink[h]});
    d.finish(verdict.d, false);
    dq.finish(verdict.dq, with_rms);
    dk.finish(verdict.dk, with_rms);
    dv.finish(verdict.dv, with_rms);
    dbias.finish(verdict.dbias, false);
    d_sink.finish(verdict.d_sink, false);
    for (const Memory* memory : outputs_) verdict.only_outputs_written &= unwritten_around(*memory);
    const auto untouched = [&](std::span<const std::byte> bytes) {
        return std::ranges::all_of(bytes, [&](std::byte x) { return x == poison_; });
    };
    verdict.only_outputs_written &=
        untouched(std::span(workspace_).first(canary)) && untouched(std::span(workspace_).last(canary));
    if (!d_sink_.empty()) {
        verdict.only_outputs_written &= untouched(std::as_bytes(std::span(d_sink_).first(1))) &&
                                        untouched(std::as_bytes(std::span(d_sink_).last(1)));
    }
    return verdict;
}

} // namespace fmha::test
