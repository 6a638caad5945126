#include "dispatcher/declarations/nearest.hpp"

#include "dispatcher/types/element.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/field_json.hpp"
#include "dispatcher/types/rule.hpp"
#include "kernels/catalog/catalog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

namespace fmha {
namespace {

/// Fields that a kernel only has together: those of the computation of a tile.
struct TileFields {
    Tile tile;
    GemmTriples wave, warp;
    friend bool operator==(const TileFields&, const TileFields&) = default;
};

TileFields tile_of(const KernelConfig& config) {
    return {config.algorithm.tile, config.algorithm.wave, config.algorithm.warp};
}
void put(KernelConfig& config, const TileFields& fields) {
    config.algorithm.tile = fields.tile;
    config.algorithm.wave = fields.wave;
    config.algorithm.warp = fields.warp;
}
bool is_open(const TileFields& fields) {
    return fields == TileFields{};
}

/// The number of doublings between two extents; 0 for an open extent.
double doublings(std::int64_t wanted, std::int64_t found) {
    if (wanted <= 0 || found <= 0) return wanted <= 0 ? 0.0 : 16.0;
    return std::abs(std::log2(static_cast<double>(wanted) / static_cast<double>(found)));
}

template <Fielded T>
double doublings_of_fields(const T& wanted, const T& found) {
    double sum = 0.0;
    each_field(wanted, [&](std::string_view name, std::int16_t extent) {
        each_field(found, [&](std::string_view other, std::int16_t value) {
            if (other == name) sum += doublings(extent, value);
        });
    });
    return sum;
}

int type_distance(DataType wanted, DataType found) {
    if (wanted == found) return 0;
    const auto bits = [](DataType type) { return element_bits(element_types(type, Fp8Flavour::ocp).q); };
    return 1 + std::abs(bits(wanted) - bits(found));
}

/// Changes that each field of `from` costs on the way to `to`, without data type and head dimensions.
int other_fields(Signature from, const Signature& to) {
    from.data_type = to.data_type;
    from.hdim_q = to.hdim_q;
    from.hdim_v = to.hdim_v;
    return static_cast<int>(differences(from, to).size());
}

/// Smaller is nearer, the first number counting most. Head dimensions below the wanted ones would leave channels out.
std::array<double, 6> distance(const KernelConfig& wanted, const KernelConfig& found) {
    const Signature &w = wanted.signature, &f = found.signature;
    const bool too_small = f.hdim_q < w.hdim_q || f.hdim_v < w.hdim_v;
    return {static_cast<double>(type_distance(w.data_type, f.data_type)),
            too_small ? 1.0 : 0.0,
            doublings(w.hdim_q, f.hdim_q) + doublings(w.hdim_v, f.hdim_v),
            static_cast<double>(other_fields(w, f)),
            wanted.algorithm.pipeline == found.algorithm.pipeline ? 0.0 : 1.0,
            doublings_of_fields(wanted.algorithm.tile, found.algorithm.tile) +
                doublings_of_fields(wanted.algorithm.wave, found.algorithm.wave) +
                doublings_of_fields(wanted.algorithm.warp, found.algorithm.warp)};
}

/// The first rule of severity error that `config` breaks, as "VR-05: sentence"; empty when it breaks none.
std::string first_broken(const KernelConfig& config, const HardwareLimits& limits) {
    for (const RuleFinding& finding : validate(config, limits))
        if (finding.severity == Severity::error) return fmt::format("{}: {}", finding.id, finding.message);
    return {};
}

std::string text_of(const TileFields& fields) {
    const auto numbers = [](const auto& group) {
        std::string text;
        each_field(group, [&](std::string_view, std::int16_t value) {
            text += (text.empty() ? "" : ",") + std::to_string(value);
        });
        return text;
    };
    return fmt::format("{} waves {} warp tiles {}", numbers(fields.tile), numbers(fields.wave),
                       numbers(fields.warp));
}

bool is_of_tile(std::string_view path) {
    return path.starts_with("algorithm.tile.") || path.starts_with("algorithm.wave.") ||
           path.starts_with("algorithm.warp.");
}

/// Puts fields of a wanted configuration back into a valid one, as far as it stays valid, and notes the others.
class Restoring {
  public:
    Restoring(const KernelConfig& wanted, const KernelConfig& nearest, const HardwareLimits& limits)
        : wanted_(wanted), limits_(limits), result_{nearest, {}, {}} {}

    /// Fields whose paths `chosen` takes, in field order.
    template <class Chosen>
    void fields(Chosen chosen) {
        for (const FieldDifference& difference : differences(wanted_, result_.config))
            if (!is_of_tile(difference.path) && chosen(difference.path)) field(difference);
    }
    void tile() {
        const TileFields kept = tile_of(result_.config), wanted = tile_of(wanted_);
        if (kept == wanted) return;
        std::string why = left_open;
        if (!is_open(wanted)) {
            put(result_.config, wanted);
            why = first_broken(result_.config, limits_);
            if (why.empty() && wanted.tile.k0max > 0 && wanted.tile.k0max < result_.config.signature.hdim_q)
                why = fmt::format("a query tile of {} channels does not hold hdim_q {}", wanted.tile.k0max,
                                  result_.config.signature.hdim_q);
            if (why.empty()) return;
            put(result_.config, kept);
        }
        result_.changes.push_back({"algorithm.tile", text_of(wanted), text_of(kept), std::move(why)});
    }
    Correction take() && { return std::move(result_); }

  private:
    static constexpr const char* left_open = "it was left open";

    void field(const FieldDifference& difference) {
        std::string why = left_open;
        if (!is_left_open(difference)) {
            set(difference.path, difference.left);
            why = first_broken(result_.config, limits_);
            if (why.empty()) return;
            set(difference.path, difference.right);
        }
        result_.changes.push_back({difference.path, difference.left, difference.right, std::move(why)});
    }
    bool is_left_open(const FieldDifference& difference) const {
        const std::string_view path = difference.path;
        if (path.starts_with("signature.hdim_") || path.ends_with("_alignment"))
            return difference.left == "0";
        return path.starts_with("algorithm.") && wanted_.algorithm == Algorithm{};
    }
    void set(std::string_view path, std::string_view text) {
        each_leaf(result_.config, [&](const std::string& found, auto& leaf) {
            if (found == path) parse_field_text(text, leaf);
        });
    }

    const KernelConfig& wanted_;
    const HardwareLimits& limits_;
    Correction result_;
};

} // namespace

Correction nearest_valid(const KernelConfig& config, const arch::ArchSet& archs) {
    const HardwareLimits& limits = archs.at(config.arch.view()).hardware().limits;
    Correction unchanged{config, {}, {}};
    for (const RuleFinding& finding : validate(config, limits))
        if (finding.severity == Severity::error)
            unchanged.broken.push_back(fmt::format("{}: {}", finding.id, finding.message));
    if (unchanged.broken.empty() && !is_open(tile_of(config))) return unchanged;

    catalog::Request request;
    request.rules = catalog::RuleSet::house;
    request.targets = {config.arch};
    request.families = catalog::FamilySet::of(config.signature.family);
    const std::vector<KernelConfig> kernels = catalog::list(archs, request);
    if (kernels.empty())
        throw InputError(fmt::format("{} has no kernel of family {}", config.arch.view(),
                                     to_string(config.signature.family)));
    const KernelConfig& nearest = *std::ranges::min_element(
        kernels, {}, [&](const KernelConfig& kernel) { return distance(config, kernel); });

    const auto is_key = [](std::string_view path) {
        return path == "signature.data_type" || path.starts_with("signature.hdim_");
    };
    Restoring restoring(config, nearest, limits);
    restoring.fields(is_key);
    restoring.fields([&](std::string_view path) { return path.starts_with("signature.") && !is_key(path); });
    restoring.fields([](std::string_view path) { return path == "algorithm.pipeline"; });
    restoring.tile();
    restoring.fields(
        [](std::string_view path) { return path.starts_with("algorithm.") && path != "algorithm.pipeline"; });
    Correction correction = std::move(restoring).take();
    correction.broken = std::move(unchanged.broken);
    return correction;
}

std::string to_text(const Correction& correction) {
    std::string text;
    for (const std::string& rule : correction.broken) text += fmt::format("breaks {}\n", rule);
    if (correction.changes.empty()) text += "valid as it is\n";
    for (const FieldChange& change : correction.changes)
        text += fmt::format("{}: {} -> {}   {}\n", change.field, change.from, change.to, change.why);
    return text + identifier(correction.config) + "\n";
}

Json to_json(const Correction& correction) {
    auto changes = Json::array();
    for (const FieldChange& change : correction.changes)
        changes.push_back(
            {{"field", change.field}, {"from", change.from}, {"to", change.to}, {"why", change.why}});
    return {{"valid", correction.changes.empty()},
            {"identifier", identifier(correction.config)},
            {"config", fields_to_json(correction.config)},
            {"broken", correction.broken},
            {"changes", std::move(changes)}};
}

} // namespace fmha
