#pragma once

#include "dispatcher/types/args.hpp"

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace fmha::targets {

/// Whether the sequences of a launch have any query row, any key, and any entry with both. A tensor without elements may
/// be null, as PyTorch gives it; rows without keys are those of R-2.
struct Elements {
    bool queries = false, keys = false, pairs = false;
    bool scalars = true; ///< tensors of one value, or of the heads, always have it
    bool pages = true;   ///< whether the pool of a cache has any

    /// Reads the lengths, which are memory of this machine.
    static Elements of(const Shape& shape, const LengthArrays& lengths);
};

/// A tensor that a launch reads or writes where `needed`.
struct NeededTensor {
    std::string_view name;
    const TensorView& view;
    bool Elements::*needed;
};

/// The first tensor that is null and has elements, one sentence. `elements()` gives the Elements and is asked only when some
/// tensor is null.
template <class AskElements>
std::optional<std::string> null_tensor(std::initializer_list<NeededTensor> tensors, AskElements elements) {
    std::optional<Elements> has;
    for (const auto& [name, view, needed] : tensors) {
        if (view.present()) continue;
        if (!has) has = elements();
        if (!((*has).*needed)) continue;
        std::string sentence = std::string(name) + ".data is NULL";
        if (needed == &Elements::queries) sentence += "; allowed only where no sequence has a query";
        if (needed == &Elements::keys) sentence += "; allowed only where no sequence has a key";
        if (needed == &Elements::pages) sentence += "; allowed only where the pool has no page";
        if (needed == &Elements::pairs) sentence += "; allowed only where no sequence has queries and keys";
        return sentence;
    }
    return std::nullopt;
}

/// The same for the arguments of a family.
template <class Args, class AskElements>
std::optional<std::string> null_tensor(const Args& args, AskElements elements) {
    auto reason =
        null_tensor({{"q", args.q, &Elements::queries}, {"o", args.o, &Elements::queries}}, elements);
    if constexpr (requires { args.k; })
        if (!reason)
            reason = null_tensor({{"k", args.k, &Elements::keys}, {"v", args.v, &Elements::keys}}, elements);
    if constexpr (requires { args.score; })
        if (!reason && args.score.bias_type == BiasType::elementwise)
            reason = null_tensor({{"bias", args.bias, &Elements::pairs}}, elements);
    if constexpr (requires { args.quant; }) {
        if (reason || args.quant.qscale == QScale::no_scale) return reason;
        const bool single = args.quant.qscale == QScale::pertensor;
        reason = null_tensor(
            {{"q_descale", args.quant.q_descale, single ? &Elements::scalars : &Elements::queries},
             {"k_descale", args.quant.k_descale, single ? &Elements::scalars : &Elements::keys},
             {"v_descale", args.quant.v_descale, single ? &Elements::scalars : &Elements::keys}},
            elements);
    }
    return reason;
}

} // namespace fmha::targets
