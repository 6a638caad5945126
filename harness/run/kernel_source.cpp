#include "harness/run/kernel_source.hpp"

#include <array>
#include <utility>

namespace fmha::harness {

std::optional<Reason> parse_reason(std::string_view text) {
    static constexpr std::array<std::pair<std::string_view, Reason>, 3> fields{
        {{"hdim_q", Reason::hdim_q_too_large},
         {"hdim_v", Reason::hdim_v_too_large},
         {"qscale", Reason::qscale_differs}}};
    for (const auto& [field, reason] : fields)
        if (field == text) return reason;
    return parse_enum<Reason>(text);
}

} // namespace fmha::harness
