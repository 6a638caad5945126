#pragma once

#include "dispatcher/types/family_traits.hpp"
#include "dispatcher/types/kernel_config.hpp"
#include "kernels/arch/arch.hpp"
#include "kernels/catalog/profile.hpp"
#include "kernels/catalog/sweep_config.hpp"

#include <array>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

/// The catalogue: every kernel that a rule set says exists, streamed as values, with the rule set's own
/// names.
namespace fmha::catalog {

/// A set of kernel families, one bit each; all of them unless told otherwise.
struct FamilySet {
    static_assert(kernel_table.size() <= 16);
    std::uint16_t bits = (1U << kernel_table.size()) - 1U;

    static constexpr FamilySet none() { return {0}; }
    static constexpr FamilySet of(KernelFamily family) {
        return {static_cast<std::uint16_t>(1U << static_cast<unsigned>(family))};
    }
    constexpr bool has(KernelFamily family) const {
        return (bits >> static_cast<unsigned>(family) & 1U) != 0;
    }
    constexpr void add(KernelFamily family) { bits = static_cast<std::uint16_t>(bits | of(family).bits); }
    friend bool operator==(FamilySet, FamilySet) = default;
};

/// The kernels to enumerate. Options that a rule set has no use for must keep their default (InputError otherwise).
struct Request {
    RuleSet rules = RuleSet::ck;
    std::vector<ArchName> targets; ///< at least one; order matters to `ck`
    Profile profile;
    MaskVocabulary masks = MaskVocabulary::simplified;
    std::vector<int> optdim; ///< query head dimensions to keep; empty, or -1 alone = all
    FamilySet families;
    /// `ck`: upstream's glob patterns, one per API family, over names without architecture suffix. An empty
    /// one accepts all; `@` separates the patterns of an API with several families (README of this folder).
    std::array<std::string, 6> filters;
    /// `ck`: upstream's switch that puts one more tile first and gives every target the forward tables of
    /// gfx9.
    bool custom_factory = false;
    /// A sweep configuration, not for `ck`. Without one, all variants unrestricted.
    std::optional<SweepConfig> sweep;
    /// `sweep`: products without constraints; the profile has no say.
    bool exhaustive = false;
};

/// A reference to a callable that takes one kernel; valid as long as the callable.
class Sink {
  public:
    template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, Sink> && std::is_invocable_v<F&, const KernelConfig&>)
        // A parameter type, meant to be implicit. NOLINTNEXTLINE(google-*, bugprone-forwarding-reference-overload)
        Sink(F&& callable)
        : object_(const_cast<void*>(static_cast<const void*>(&callable))),
          call_([](void* object, const KernelConfig& config) {
              (*static_cast<std::remove_reference_t<F>*>(object))(config);
          }) {}
    void operator()(const KernelConfig& config) const { call_(object_, config); }

  private:
    void* object_;
    void (*call_)(void*, const KernelConfig&);
};

/// Streams every kernel of the request in the rule set's emission order. Throws InputError for targets,
/// options or tables that cannot be used.
void enumerate(const arch::ArchSet& archs, const Request& request, Sink sink);

/// `enumerate` into a list, for callers that need one.
std::vector<KernelConfig> list(const arch::ArchSet& archs, const Request& request);

/// Whether `profile` keeps a kernel of the working list (`house`), wherever it comes from.
bool kept_by(const Profile& profile, const KernelConfig& config);

/// Which names: `ck` spells the generic mask class by vocabulary ("mask" in simplified runs, "mg" in generic
/// ones), so the vocabulary belongs to the naming and not to the record.
struct Naming {
    RuleSet rules = RuleSet::ck;
    MaskVocabulary masks = MaskVocabulary::simplified;
    // NOLINTNEXTLINE(google-explicit-constructor): a rule set is a naming
    Naming(RuleSet set, MaskVocabulary vocabulary = MaskVocabulary::simplified)
        : rules(set), masks(vocabulary) {}
};

/// Appends the rule set's canonical name of the kernel (for `ck` the blob's file name, `.cpp` included).
void append_name(const Naming& naming, const KernelConfig& config, std::string& out);
std::string name_of(const Naming& naming, const KernelConfig& config);

/// One reason in the answer to "why": a table entry that a name comes from, or a rule that removes it.
struct WhyStep {
    enum class Kind : std::uint8_t { table, rule, option };
    Kind kind = Kind::table;
    std::string id; ///< rule id ("R4"), table path ("tables/ck/gfx9.json#/fwd/tiles/3") or option ("profile")
    std::string text; ///< one sentence
    bool removes = false;
};

/// Why a name is in the list that a request describes, or why it is not.
struct Why {
    std::string name;
    bool listed = false;
    std::optional<KernelConfig> config; ///< when some table entry produces the name before rules
    std::vector<WhyStep> steps; ///< table entries first, then rules and options in order of application
    std::string nearest;        ///< when nothing produces the name: the listed name that shares most tokens
    std::string to_string() const; ///< for people, several lines
};

/// Explains `name` under `request` (its own name, with or without a suffix such as `.cpp`).
Why why(const arch::ArchSet& archs, const Request& request, std::string_view name);

/// A rule as the listing shows it.
struct RuleRow {
    std::string_view id;
    std::string_view families;
    std::string_view says;
};

/// Every rule with an id that a rule set applies, in order of application.
std::vector<RuleRow> rules_of(RuleSet rules);

/// The kernel families behind an API family, such as the three stages of `bwd`.
FamilySet families_of(ApiFamily api);

} // namespace fmha::catalog
