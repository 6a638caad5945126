#include "reference/append.hpp"

#include "dispatcher/types/check_append.hpp"
#include "dispatcher/types/error.hpp"
#include "reference/append_result.hpp"
#include "reference/matrix/append_blocks.hpp"
#include "reference/row/append_row.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <string_view>

namespace fmha::reference {
namespace {

void require_type(const TensorView& view, ElementType type, std::string_view name, bool needed) {
    if ((needed && !view.present()) || (view.present() && view.type != type))
        throw Error(std::string(name) + " must be a tensor of " + std::string(to_string(type)) + ", it is " +
                    (view.present() ? std::string(to_string(view.type)) : "absent"));
}

/// Codes in the order of their values, both zeros at 0.
std::int64_t place_in_order(std::uint32_t code) {
    const std::int64_t magnitude = code & 0x7FFFU;
    return (code & 0x8000U) != 0 ? -magnitude : magnitude;
}

} // namespace

void require_appendable(const AppendKvArgs& args) {
    check_append(args);
    const ElementType type = args.k.type;
    const bool adds = args.seqlen_knew > 0 && args.shape.batch > 0, rotates = args.rope.type != Rope::none;
    require_type(args.k_new, type, "k_new", adds);
    require_type(args.v_new, args.v.type, "v_new", adds);
    if (!rotates) return;
    if (type != ElementType::fp16 && type != ElementType::bf16)
        throw ProblemError("V-7", "k", std::string(to_string(type)),
                           "RoPE exists for fp16 and bf16, not for " + std::string(to_string(type)));
    const std::int64_t dim = args.rope.rotary_dim;
    if (dim <= 0 || dim % 16 != 0 || dim > args.shape.hdim_q)
        throw ProblemError("V-4", "rotary_dim", dim,
                           "rotary_dim is " + std::to_string(dim) +
                               "; it must be a multiple of 16 from 16 to " +
                               std::to_string(args.shape.hdim_q));
    require_type(args.rope.cos, type, "cos", adds || args.q.present());
    require_type(args.rope.sin, type, "sin", adds || args.q.present());
    require_type(args.q, type, "q", false);
}

AppendedRows append(const AppendKvArgs& args, Oracle oracle) {
    return oracle == Oracle::matrix ? append_in_matrix_form(args) : append_row_by_row(args);
}

std::int64_t values_apart(ElementType type, std::uint32_t x, std::uint32_t y) {
    if (element_bits(type) != 16) throw Error("values_apart counts values of 16-bit types only");
    const std::uint32_t infinity = type == ElementType::bf16 ? 0x7F80U : 0x7C00U;
    const auto is_nan = [&](std::uint32_t code) { return (code & 0x7FFFU) > infinity; };
    if (is_nan(x) || is_nan(y)) return is_nan(x) && is_nan(y) ? 0 : std::numeric_limits<std::int64_t>::max();
    return std::abs(place_in_order(x) - place_in_order(y));
}

std::int64_t append_disagreements(const AppendedRows& x, const AppendedRows& y) {
    if (x.rows.size() != y.rows.size() || x.code.size() != y.code.size())
        return std::numeric_limits<std::int64_t>::max();
    std::int64_t count = 0;
    for (std::size_t n = 0; n < x.rows.size(); ++n) count += x.rows[n] == y.rows[n] ? 0 : 1;
    for (std::size_t n = 0; n < x.code.size(); ++n) {
        const double a = x.exact[n], b = y.exact[n];
        const bool same = a == b || (std::isnan(a) && std::isnan(b));
        count += x.code[n] == y.code[n] && same ? 0 : 1;
    }
    return count;
}

} // namespace fmha::reference
