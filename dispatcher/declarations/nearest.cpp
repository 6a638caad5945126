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

/// Whether a kernel stays valid with the wanted head dimensions, which count more than its pipeline.
bool takes_head_dimensions(KernelConfig found, const Signature& wanted, const HardwareLimits& limits) {
    if (wanted.hdim_q > 0) found.signature.hdim_q = wanted.hdim_q;
    if (wanted.hdim_v > 0) found.signature.hdim_v = wanted.hdim_v;
    return is_valid(found, limits);
}

/// Smaller is nearer, the first number counting most. Head dimensions below the wanted ones would leave channels out.
std::array<double, 7> distance(const KernelConfig& wanted, const KernelConfig& found,
                               const HardwareLimits& limits) {
    const Signature &w = wanted.signature, &f = found.signature;
    const bool too_small = f.hdim_q < w.hdim_q || f.hdim_v < w.hdim_v;
    return {static_cast<double>(type_distance(w.data_type, f.data_type)),
            too_small ? 1.0 : 0.0,
            takes_head_dimensions(found, w, limits) ? 0.0 : 1.0,
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
    Restoring(const KernelConfig& wanted, const StatedFields& stated, const KernelConfig& nearest,
              const HardwareLimits& limits)
        : wanted_(wanted), stated_(stated), limits_(limits), result_{nearest, {}, {}} {
        const auto in_algorithm = [](std::string_view path) { return path.starts_with("algorithm."); };
        algorithm_is_open_ = wanted.algorithm == Algorithm{} && std::ranges::none_of(stated, in_algorithm);
    }

    /// One field may need another that comes after it, so that all are tried until none of them can be put back.
    Correction restored() && {
        bool changed = true;
        while (changed) {
            changed = false;
            each_difference([&](const FieldDifference& one) { changed |= put_back(one); },
                            [&] { changed |= put_tile_back(); });
        }
        each_difference(
            [&](const FieldDifference& one) {
                result_.changes.push_back({one.path, one.left, one.right, why_not(one)});
            },
            [&] {
                result_.changes.push_back({"algorithm.tile", text_of(tile_of(wanted_)),
                                           text_of(tile_of(result_.config)), why_not_tile()});
            });
        return std::move(result_);
    }

  private:
    static constexpr const char* left_open = "it was left open";

    /// Calls `of_field`, and `of_tile` for the tile, with what the result has otherwise: what counts most comes first.
    void each_difference(auto of_field, auto of_tile) {
        const auto is_key = [](std::string_view path) {
            return path == "signature.data_type" || path.starts_with("signature.hdim_");
        };
        const auto fields = [&](auto chosen) {
            for (const FieldDifference& one : differences(wanted_, result_.config))
                if (!is_of_tile(one.path) && chosen(one.path)) of_field(one);
        };
        fields(is_key);
        fields([&](std::string_view path) { return path.starts_with("signature.") && !is_key(path); });
        fields([](std::string_view path) { return path == "algorithm.pipeline"; });
        if (tile_of(result_.config) != tile_of(wanted_)) of_tile();
        fields([](std::string_view path) {
            return path.starts_with("algorithm.") && path != "algorithm.pipeline";
        });
    }
    bool put_back(const FieldDifference& one) {
        if (!why_not(one).empty()) return false;
        set(result_.config, one);
        return true;
    }
    bool put_tile_back() {
        if (!why_not_tile().empty()) return false;
        put(result_.config, tile_of(wanted_));
        return true;
    }
    /// Why the result cannot have the wanted value; empty when it can.
    std::string why_not(const FieldDifference& one) const {
        if (is_left_open(one)) return left_open;
        KernelConfig tried = result_.config;
        set(tried, one);
        return first_broken(tried, limits_);
    }
    std::string why_not_tile() const {
        const TileFields wanted = tile_of(wanted_);
        if (is_open(wanted)) return left_open;
        KernelConfig tried = result_.config;
        put(tried, wanted);
        std::string why = first_broken(tried, limits_);
        if (why.empty() && wanted.tile.k0max > 0 && wanted.tile.k0max < tried.signature.hdim_q)
            why = fmt::format("a query tile of {} channels does not hold hdim_q {}", wanted.tile.k0max,
                              tried.signature.hdim_q);
        return why;
    }
    bool is_left_open(const FieldDifference& one) const {
        const std::string_view path = one.path;
        if (path.starts_with("signature.hdim_") || path.ends_with("_alignment"))
            return one.left == "0" && !stated_.contains(path);
        return path.starts_with("algorithm.") && algorithm_is_open_;
    }
    static void set(KernelConfig& config, const FieldDifference& one) {
        each_leaf(config, [&](const std::string& found, auto& leaf) {
            if (found == one.path) parse_field_text(one.left, leaf);
        });
    }

    const KernelConfig& wanted_;
    const StatedFields& stated_;
    const HardwareLimits& limits_;
    bool algorithm_is_open_ = false;
    Correction result_;
};

} // namespace

StatedFields stated_fields(const Json& object, const std::string& path) {
    StatedFields stated;
    for (const auto& [key, value] : object.items()) {
        const std::string own = path.empty() ? key : path + "." + key;
        if (value.is_object())
            stated.merge(stated_fields(value, own));
        else
            stated.insert(own);
    }
    return stated;
}

Correction nearest_valid(const KernelConfig& config, const arch::ArchSet& archs, const StatedFields& stated) {
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
        kernels, {}, [&](const KernelConfig& kernel) { return distance(config, kernel, limits); });

    Correction correction = Restoring(config, stated, nearest, limits).restored();
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
