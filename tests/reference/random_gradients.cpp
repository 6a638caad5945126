#include "tests/reference/random_gradients.hpp"

#include "reference/numerics/formats.hpp"
#include "reference/numerics/lengths.hpp"

#include <algorithm>
#include <cstring>
#include <random>

namespace fmha::reference::test {
namespace {

Wish differentiable(Wish wish) {
    wish.differentiable = true;
    return wish;
}

} // namespace

GradientOptions one_thread(double u_p, double f_p) {
    GradientOptions options;
    options.threads = 1;
    options.numerics.u_p = u_p;
    options.numerics.f_p = f_p;
    return options;
}

void put(const TensorView& view, std::int64_t offset, double value) {
    const std::uint32_t code = encode(view.type, value);
    const auto size = static_cast<std::size_t>(element_bits(view.type) / 8);
    std::memcpy(static_cast<std::byte*>(view.data) + static_cast<std::size_t>(offset) * size, &code, size);
}

RandomGradients::RandomGradients(std::uint64_t seed, Wish wish, bool stored_bytes)
    : problem_(seed, differentiable(wish)) {
    const FwdArgs& forward = problem_.args();
    args_.shape = forward.shape;
    args_.q = forward.q;
    args_.k = forward.k;
    args_.v = forward.v;
    args_.bias = forward.bias;
    args_.lengths = forward.lengths;
    args_.mask = forward.mask;
    args_.score = forward.score;
    args_.dropout = forward.dropout;
    args_.reduce_dk_dv = seed % 5 < 2;
    const bool packed = args_.shape.mode == Mode::group;
    const std::int64_t rows =
        packed ? std::int64_t{args_.lengths.seqstart_q[args_.shape.batch]} : args_.shape.seqlen_q;
    const std::int64_t heads = args_.shape.nhead_q;
    args_.o = tensor(problem_.types().o, heads, rows, args_.shape.hdim_v);
    args_.d_o = tensor(problem_.types().o, heads, rows, args_.shape.hdim_v);
    args_.lse = tensor(ElementType::fp32, heads, rows, 1);

    std::mt19937_64 engine(seed + 17);
    std::normal_distribution<double> normal;
    const ForwardRows result = forward.shape.batch > 0
                                   ? reference::forward(forward, all_rows(args_),
                                                        {.companions = false, .numerics = {}, .threads = 1})
                                   : ForwardRows{};
    for (std::size_t n = 0; n < result.rows.size(); ++n) {
        const auto [b, h, i] = result.rows[n];
        const auto r = static_cast<std::int64_t>(n);
        const std::int64_t row = entry_of(forward, b).start_q + i;
        put(args_.lse, args_.lse.offset(b, h, row, 0), result.lse(r));
        for (std::int64_t c = 0; c < args_.shape.hdim_v; ++c) {
            put(args_.o, args_.o.offset(b, h, row, c), result.o(r, c));
            put(args_.d_o, args_.d_o.offset(b, h, row, c), normal(engine));
        }
    }
    if (!stored_bytes || !(args_.dropout.p_drop > 0.0F)) return;
    std::int64_t keys = 0;
    for (std::int64_t b = 0; b < args_.shape.batch; ++b) keys = std::max(keys, entry_of(forward, b).seqlen_k);
    args_.randval = tensor(ElementType::uint8, heads, rows, keys);
    for (std::byte& byte : bytes_.back()) byte = static_cast<std::byte>(engine() & 0xFFU);
}

TensorView RandomGradients::tensor(ElementType type, std::int64_t heads, std::int64_t rows,
                                   std::int64_t cols) {
    const bool packed = args_.shape.mode == Mode::group;
    const std::int64_t line = cols + 3;
    TensorView view;
    view.type = type;
    view.row_stride = line;
    view.head_stride = rows * line + 5;
    view.batch_stride = packed ? 0 : heads * view.head_stride;
    const std::int64_t elements = (packed ? 1 : args_.shape.batch) * heads * view.head_stride + 1;
    view.data =
        bytes_.emplace_back(static_cast<std::size_t>(element_bytes(type, elements)), std::byte{0xFF}).data();
    return view;
}

GradientRequest RandomGradients::everything() const {
    return {all_rows(args_), all_keys(args_), true, args_.score.sink_logit != nullptr};
}

std::string RandomGradients::text() const {
    return problem_.text() + (args_.randval.present() ? " stored bytes" : "") +
           (args_.reduce_dk_dv ? " reduced" : "");
}

} // namespace fmha::reference::test
