#include "combine_problem.hpp"

#include "reference/combine.hpp"
#include "reference/numerics/formats.hpp"
#include "tests/kernels/normal_numbers.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace fmha::test {
namespace {

constexpr float never = -std::numeric_limits<float>::infinity();
constexpr std::byte poison{0xFF};
constexpr std::int64_t guard = 1024; // elements before and behind a tensor

std::uint32_t code_at(const TensorView& view, std::int64_t element) {
    std::uint32_t code = 0;
    const auto size = static_cast<std::size_t>(element_bits(view.type) / 8);
    std::memcpy(&code, static_cast<const std::byte*>(view.data) + element * static_cast<std::int64_t>(size),
                size);
    return code;
}

double ratio(double difference, double limit) {
    if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
    return difference == 0.0 ? 0.0 : difference / limit;
}

} // namespace

std::string CombineSpec::text() const {
    std::string text = "batch " + std::to_string(batch) + " heads " + std::to_string(heads) + " hdim " +
                       std::to_string(hdim_v) + " splits " + std::to_string(splits) + " logs " +
                       std::to_string(static_cast<int>(logs)) + " sinks " +
                       std::to_string(static_cast<int>(sinks)) + " lengths";
    for (const std::int64_t length : seqlen_q) text += ' ' + std::to_string(length);
    return text + (rows_outermost ? " rows outermost" : "") + " gap " + std::to_string(gap) + " seed " +
           std::to_string(seed);
}

CombineProblem::CombineProblem(const KernelConfig& kernel, const CombineSpec& spec) : spec_(spec) {
    if (spec_.hdim_v == 0) spec_.hdim_v = kernel.signature.hdim_v;
    const bool group = kernel.signature.mode == Mode::group;
    Shape& shape = args_.shape;
    shape.mode = kernel.signature.mode;
    shape.batch = spec_.batch;
    shape.nhead_q = shape.nhead_k = spec_.heads;
    shape.hdim_q = kernel.signature.hdim_q;
    shape.hdim_v = spec_.hdim_v;
    for (std::int64_t b = 0; b < spec_.batch; ++b)
        lengths_.push_back(spec_.seqlen_q[group ? static_cast<std::size_t>(b) % spec_.seqlen_q.size() : 0]);
    shape.seqlen_q = lengths_.front();
    shape.max_seqlen_q = *std::ranges::max_element(lengths_);
    rows_ = shape.seqlen_q;
    if (group) {
        starts_.push_back(0);
        for (const std::int64_t length : lengths_)
            starts_.push_back(starts_.back() + static_cast<std::int32_t>(length));
        rows_ = starts_.back();
        args_.lengths.seqstart_q = starts_.data();
    }
    args_.score.scale_o = spec_.scale_o;
    args_.partials.num_splits = spec_.splits;
    std::mt19937_64 engine(spec_.seed);
    for (std::int64_t h = 0; h < spec_.heads && spec_.sinks != Sinks::none; ++h) {
        const auto x = static_cast<float>(std::normal_distribution<double>()(engine));
        const bool off = spec_.sinks == Sinks::absent || (spec_.sinks == Sinks::normal && h % 3 == 2);
        sinks_.push_back(off ? never : spec_.sinks == Sinks::above ? 30.0F + x : x);
    }
    if (!sinks_.empty()) args_.score.sink_logit = sinks_.data();

    o_acc_ = memory(ElementType::fp32, spec_.heads * spec_.splits, spec_.hdim_v);
    lse_acc_ = memory(ElementType::fp32, spec_.heads * spec_.splits, 1);
    const ElementTypes types = element_types(kernel.signature.data_type, fp8_flavour(kernel.arch));
    o_ = memory(types.o, spec_.heads, spec_.hdim_v);
    lse_ = memory(ElementType::fp32, spec_.heads, 1);
    fill_partials(engine);
    args_.partials.o_acc = o_acc_.view;
    args_.partials.lse_acc = lse_acc_.view;
    args_.o = o_.view;
    if (kernel.signature.has_lse) args_.lse = lse_.view;
}

CombineProblem::Memory CombineProblem::memory(ElementType type, std::int64_t heads, std::int64_t cols) const {
    const std::int64_t batch = args_.shape.mode == Mode::group ? 1 : spec_.batch;
    Memory out;
    out.view.type = type;
    const std::int64_t line = cols + spec_.gap;
    out.view.row_stride = spec_.rows_outermost ? heads * line : line;
    out.view.head_stride = spec_.rows_outermost ? line : rows_ * line;
    out.view.batch_stride = args_.shape.mode == Mode::group ? 0 : heads * rows_ * line;
    out.bytes.assign(static_cast<std::size_t>(element_bytes(type, batch * heads * rows_ * line + 2 * guard)),
                     poison);
    out.view.data = out.bytes.data() + element_bytes(type, guard);
    return out;
}

std::int64_t CombineProblem::first_row(std::int64_t b) const {
    return args_.shape.mode == Mode::group ? starts_[static_cast<std::size_t>(b)] : 0;
}

void CombineProblem::fill_partials(std::mt19937_64& engine) {
    const auto chance = [&](double p) { return std::bernoulli_distribution(p)(engine); };
    auto normal = [&, numbers = NormalNumbers()]() mutable { return numbers(engine); };
    const auto put = [](const Memory& m, std::int64_t offset, double value) {
        const auto x = static_cast<float>(value);
        std::memcpy(static_cast<std::byte*>(m.view.data) + 4 * offset, &x, sizeof x);
    };
    for (std::int64_t b = 0; b < spec_.batch; ++b)
        for (std::int64_t h = 0; h < spec_.heads; ++h)
            for (std::int64_t i = 0; i < lengths_[static_cast<std::size_t>(b)]; ++i) {
                const bool nothing =
                    spec_.logs == Logs::all_empty || (spec_.logs == Logs::some_empty && chance(0.2));
                const double anchor = spec_.logs == Logs::far ? (chance(0.5) ? 1500.0 : -1500.0) : 0.0;
                const double width = spec_.logs == Logs::wide ? 300.0 : spec_.logs == Logs::equal ? 0.0 : 2.0;
                for (std::int64_t s = 0; s < spec_.splits; ++s) {
                    const std::int64_t head = h * spec_.splits + s, row = first_row(b) + i;
                    const bool empty = nothing || (spec_.logs == Logs::some_empty && chance(0.4)) ||
                                       (spec_.logs == Logs::last_only && s + 1 < spec_.splits);
                    put(lse_acc_, lse_acc_.view.offset(b, head, row, 0),
                        empty ? double{never} : anchor + width * normal());
                    for (std::int64_t c = 0; c < spec_.hdim_v && !empty; ++c)
                        put(o_acc_, o_acc_.view.offset(b, head, row, c), normal());
                }
            }
}

double CombineProblem::stored(const Memory& memory, std::int64_t b, std::int64_t h, std::int64_t row,
                              std::int64_t c) const {
    return reference::decode(memory.view.type,
                             code_at(memory.view, memory.view.offset(b, h, first_row(b) + row, c)));
}

std::vector<std::byte> CombineProblem::outputs() const {
    std::vector<std::byte> all = o_.bytes;
    all.insert(all.end(), lse_.bytes.begin(), lse_.bytes.end());
    return all;
}

bool CombineProblem::unwritten_around_outputs() const {
    for (const auto& [memory, cols, written] :
         {std::tuple(&o_, spec_.hdim_v, true), std::tuple(&lse_, std::int64_t{1}, args_.lse.present())}) {
        std::vector<std::byte> left = memory->bytes;
        const auto size = static_cast<std::size_t>(element_bytes(memory->view.type));
        for (std::int64_t b = 0; b < spec_.batch && written; ++b)
            for (std::int64_t h = 0; h < spec_.heads; ++h)
                for (std::int64_t i = 0; i < lengths_[static_cast<std::size_t>(b)]; ++i)
                    for (std::int64_t c = 0; c < cols; ++c) {
                        const auto at =
                            static_cast<std::size_t>(guard + memory->view.offset(b, h, first_row(b) + i, c));
                        std::fill_n(left.begin() + static_cast<std::ptrdiff_t>(at * size), size, poison);
                    }
        if (std::ranges::any_of(left, [](std::byte x) { return x != poison; })) return false;
    }
    return true;
}

CombineVerdict CombineProblem::judge(const Numerics& numerics) const {
    reference::ForwardOptions options;
    options.numerics = numerics;
    options.threads = 1;
    const auto rows = reference::all_rows(args_);
    const reference::CombinedRows expected = reference::combine(args_, rows, options);
    const double largest = element_bits(args_.o.type) == 8 ? reference::largest_finite(args_.o.type)
                                                           : std::numeric_limits<double>::infinity();
    CombineVerdict verdict;
    verdict.only_outputs_written = unwritten_around_outputs();
    double squares = 0.0, variance = 0.0;
    for (std::size_t n = 0; n < rows.size(); ++n) {
        const auto [b, h, i] = rows[n];
        const auto r = static_cast<std::int64_t>(n);
        const reference::CombineBound bound(expected, r);
        const bool nothing = expected.splits_taken[n] == 0;
        const bool as_it_is =
            expected.splits_taken[n] == 1 && (sinks_.empty() || sinks_[static_cast<std::size_t>(h)] == never);
        for (std::int64_t c = 0; c < spec_.hdim_v; ++c) {
            const double got = stored(o_, b, h, i, c),
                         want = std::clamp(bound.expected(c), -largest, largest);
            const double distance = ratio(std::abs(got - want), bound.limit(c));
            if (as_it_is && got != reference::round_to(args_.o.type, bound.expected(c)))
                verdict.exact_rows_exact = false;
            if (nothing && (got != 0.0 || std::signbit(got))) verdict.exact_rows_exact = false;
            squares += std::pow(got - want, 2);
            variance += bound.variance(c);
            if (distance <= verdict.o) continue;
            verdict.o = distance;
            verdict.worst = "O[" + std::to_string(b) + "," + std::to_string(h) + "," + std::to_string(i) +
                            "," + std::to_string(c) + "] = " + std::to_string(got) + ", expected " +
                            std::to_string(want);
        }
        if (!args_.lse.present()) continue;
        const double lse = stored(lse_, b, h, i, 0), want = expected.lse[n];
        verdict.lse = std::max(
            verdict.lse,
            lse == want ? 0.0 : ratio(std::abs(lse - want), reference::combined_lse_limit(expected, r)));
        if ((nothing || as_it_is) && lse != want) verdict.exact_rows_exact = false;
    }
    if (variance > 0.0) verdict.rms = std::sqrt(squares / variance);
    if (rows.size() * static_cast<std::size_t>(spec_.hdim_v) < 4096) verdict.rms /= 2.0;
    return verdict;
}

} // namespace fmha::test
