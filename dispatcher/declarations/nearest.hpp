#pragma once

#include "dispatcher/types/json.hpp"
#include "dispatcher/types/kernel_config.hpp"
#include "kernels/arch/arch.hpp"

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace fmha {

/// A field that a correction gave another value.
struct FieldChange {
    std::string
        field; ///< "signature.hdim_q"; "algorithm.tile" together with waves and warp tiles, which change as one
    std::string from, to;
    std::string why; ///< one sentence: the rule that the old value breaks, or the field that was left open
    friend bool operator==(const FieldChange&, const FieldChange&) = default;
};

/// The valid configuration that is nearest to a given one.
struct Correction {
    KernelConfig config;
    std::vector<std::string>
        broken; ///< rules that the given one breaks, as "VR-05: sentence"; empty: it was valid
    std::vector<FieldChange> changes; ///< in field order; empty when nothing changed
};

/// Paths of the fields that a configuration in JSON states, as "algorithm.pipeline". A default that is stated is no open field.
using StatedFields = std::set<std::string, std::less<>>;
StatedFields stated_fields(const Json& object, const std::string& path = {});

/// A valid configuration stays as it is. An invalid one, or one without a tile, becomes the nearest kernel of rule set
/// `house` for its architecture and family, with every field of the given one put back that breaks no rule there. Nearest means, in this
/// order: its data type, its head dimensions, the other fields of its signature, its pipeline, its tile. The pipeline and what belongs to
/// it are open where all of `algorithm` has its defaults and none of it is `stated`. Throws InputError for an architecture that `archs`
/// lacks, and for a family of which it has no kernel.
Correction nearest_valid(const KernelConfig& config, const arch::ArchSet& archs,
                         const StatedFields& stated = {});

/// One line a change, between a line for each broken rule and the identifier of the result.
std::string to_text(const Correction& correction);
/// {"valid", "identifier", "config", "broken", "changes": [{"field", "from", "to", "why"}]}.
Json to_json(const Correction& correction);

} // namespace fmha
