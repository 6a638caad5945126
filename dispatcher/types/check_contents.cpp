#include "dispatcher/types/check_contents.hpp"

#include "dispatcher/types/check_append.hpp"
#include "dispatcher/types/check_cache.hpp"
#include "dispatcher/types/check_lengths.hpp"
#include "dispatcher/types/check_values.hpp"
#include "dispatcher/types/error.hpp"

#include <variant>

namespace fmha {
namespace {

/// No arguments at all.
void check_lengths_and_places(std::monostate) {}

void check_lengths_and_places(const FwdArgs& args) {
    require_block_starts(args);
    check_lengths(args.shape, args.lengths);
    check_block_starts(args);
    const QuantArgs& quant = args.quant;
    if (quant.q_descale.present() && quant.k_descale.present() && quant.v_descale.present())
        check_descales(args);
}

void check_lengths_and_places(const AppendKvArgs& args) {
    check_append(args);
}

template <class Args>
void check_lengths_and_places(const Args& args) {
    if constexpr (requires { args.place; }) {
        check_query_lengths(args.shape, args.lengths);
        check_cache(args.shape, args.lengths, args.place, args.quant);
    } else {
        check_lengths(args.shape, args.lengths);
    }
}

} // namespace

void require_block_starts(const FwdArgs& args) {
    const QuantArgs& quant = args.quant;
    if (args.shape.mode != Mode::group || quant.qscale == QScale::no_scale ||
        quant.qscale == QScale::pertensor)
        return;
    if (quant.block_scale_seqstart_k == nullptr) throw InputError("quant.block_scale_seqstart_k is NULL");
    if (quant.block_scale_seqstart_q == nullptr && quant.qscale != QScale::mx)
        throw InputError("quant.block_scale_seqstart_q is NULL");
}

void check_contents(const Invocation& arguments) {
    std::visit(
        [](const auto& args) {
            check_lengths_and_places(args);
            if constexpr (requires { args.score; }) check_sink_logits(args.score, args.shape.nhead_q);
        },
        arguments);
}

} // namespace fmha
