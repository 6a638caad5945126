#include "kernels/catalog/catalog.hpp"

#include "dispatcher/types/error.hpp"
#include "dispatcher/types/family_traits.hpp"
#include "kernels/catalog/ck/ck.hpp"
#include "kernels/catalog/house/house.hpp"
#include "kernels/catalog/rule_set.hpp"
#include "kernels/catalog/rules/audit_request.hpp"
#include "kernels/catalog/rules/rules_ops.hpp"
#include "kernels/catalog/sweep/accepts.hpp"
#include "kernels/catalog/sweep/sweep_ops.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace fmha::catalog {

namespace {

const RuleSetOps& ops_of(RuleSet rules) {
    const std::array known{&ck::ops(), &audit::claim_ops(), &audit::stored_ops(), &audit::sweep_ops(),
                           &house::ops()};
    for (const RuleSetOps* ops : known)
        if (ops->rules == rules) return *ops;
    throw InputError(fmt::format("rule set \"{}\" is not available", to_string(rules)));
}

void check(const Request& request) {
    if (request.targets.empty()) throw InputError("enumerate: at least one architecture is needed");
    if (request.rules == RuleSet::ck && request.sweep)
        throw InputError("sweep configurations apply to house, claim, stored and sweep, not to ck");
    if ((request.rules == RuleSet::ck || request.rules == RuleSet::house) && request.exhaustive)
        throw InputError(fmt::format("exhaustive mode applies to claim, stored and sweep, not to {}",
                                     to_string(request.rules)));
    if (request.rules == RuleSet::ck) return;
    const auto refuse = [&](bool set, std::string_view option) {
        if (set)
            throw InputError(
                fmt::format("{} applies to rule set ck only, not to {}", option, to_string(request.rules)));
    };
    refuse(request.custom_factory, "the custom factory switch");
    refuse(
        std::any_of(request.filters.begin(), request.filters.end(), [](const auto& f) { return !f.empty(); }),
        "a glob filter");
    refuse(request.masks != MaskVocabulary::simplified, "a mask vocabulary");
}

using Tokens = std::vector<std::string_view>;

/// Splits a name at its underscores into `tokens`.
void split(std::string_view name, Tokens& tokens) {
    tokens.clear();
    for (;;) {
        const std::size_t end = name.find('_');
        tokens.push_back(name.substr(0, end));
        if (end == std::string_view::npos) return;
        name.remove_prefix(end + 1);
    }
}

bool contains(const Tokens& tokens, std::string_view token) {
    return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

Tokens without(const Tokens& tokens, const Tokens& others) {
    Tokens rest;
    for (const std::string_view token : tokens)
        if (!contains(others, token) && !contains(rest, token)) rest.push_back(token);
    return rest;
}

/// Finds the name most like a wanted one among many, which come one after another. A name is often its predecessor with another end,
/// so only the tokens behind their common beginning are looked at.
class NearestName {
  public:
    explicit NearestName(const Tokens& wanted) : wanted_(wanted), best_(wanted.size() / 2) {}

    void offer(const std::string& name) {
        const auto same = static_cast<std::size_t>(
            std::mismatch(name.begin(), name.end(), last_.begin(), last_.end()).first - name.begin());
        while (!seen_.empty() && seen_.back().end > same) seen_.pop_back();
        last_ = name;
        std::size_t begin = seen_.empty() ? 0 : seen_.back().end;
        while (begin < name.size()) {
            const std::size_t end = std::min(name.find('_', begin), name.size());
            add(std::string_view(name).substr(begin, end - begin), end + 1);
            begin = end + 1;
        }
        const Seen& all = seen_.back();
        const std::size_t likeness = all.shared + all.leading;
        // Of names that are equally like it, that of the fewest tokens.
        if (likeness < best_ || (likeness == best_ && seen_.size() >= tokens_of_best_)) return;
        best_ = likeness;
        tokens_of_best_ = seen_.size();
        found_ = name;
    }

    /// Empty when no name has more than half of the wanted one's tokens.
    const std::string& found() const { return found_; }

  private:
    /// The facts that are known of a name up to one of its tokens, which ends before `end`.
    struct Seen {
        std::size_t end = 0, shared = 0;
        std::size_t leading = 0; ///< leading tokens say which kind of kernel a name is, so they count twice
    };

    void add(std::string_view token, std::size_t end) {
        const std::size_t index = seen_.size();
        Seen next = seen_.empty() ? Seen{} : seen_.back();
        next.end = end;
        if (contains(wanted_, token)) ++next.shared;
        if (next.leading == index && index < wanted_.size() && wanted_[index] == token) ++next.leading;
        seen_.push_back(next);
    }

    const Tokens& wanted_;
    std::size_t best_, tokens_of_best_ = 0;
    std::string last_, found_;
    std::vector<Seen> seen_; ///< one a token of `last_`
};

/// The part of a name's first tokens that must hold for a kernel.
enum class HeadMatch : std::uint8_t { all, family_and_type, none };

bool begins_like(const audit::NameHead& head, HeadMatch match, const Signature& signature) {
    if (match == HeadMatch::none) return true;
    if (head.family != signature.family) return false;
    if (head.data_type && *head.data_type != signature.data_type) return false;
    return match != HeadMatch::all || !head.head ||
           *head.head == std::array<std::int64_t, 2>{signature.hdim_q, signature.hdim_v};
}

/// For a name that no table entry produces: the listed name most like it, and the difference.
void compare_with_nearest(const arch::ArchSet& archs, const Request& request, Why& answer) {
    Tokens wanted;
    split(answer.name, wanted);
    NearestName nearest(wanted);
    std::string shown;
    // Lists of sweeps have millions of names, so the first look is at those that begin like the wanted one. Names of
    // other rule sets begin otherwise.
    const bool small = request.rules == RuleSet::ck || request.rules == RuleSet::house;
    const audit::NameHead head = small ? audit::NameHead{} : audit::read_name_head(answer.name);
    for (const HeadMatch match : {HeadMatch::all, HeadMatch::family_and_type, HeadMatch::none}) {
        if (!nearest.found().empty()) break;
        if (!head.family && match != HeadMatch::none) continue;
        enumerate(archs, request, [&](const KernelConfig& config) {
            if (!begins_like(head, match, config.signature)) return;
            shown.clear();
            append_name({request.rules, request.masks}, config, shown);
            nearest.offer(shown);
        });
    }
    if (nearest.found().empty()) return;
    answer.nearest = nearest.found();
    Tokens tokens;
    split(answer.nearest, tokens);
    // The sentence leaves the neighbour's name out, so that names with one cause share one sentence.
    answer.steps.push_back(
        {WhyStep::Kind::table, "tables",
         fmt::format("no entry gives \"{}\"; the nearest listed name has \"{}\" there",
                     fmt::join(without(wanted, tokens), " "), fmt::join(without(tokens, wanted), " ")),
         true});
}

} // namespace

void enumerate(const arch::ArchSet& archs, const Request& request, Sink sink) {
    check(request);
    if (request.rules == RuleSet::house && request.sweep)
        return ops_of(request.rules).enumerate(archs, request, [&](const KernelConfig& kernel) {
            if (accepts(*request.sweep, kernel)) sink(kernel);
        });
    ops_of(request.rules).enumerate(archs, request, sink);
}

std::vector<KernelConfig> list(const arch::ArchSet& archs, const Request& request) {
    std::vector<KernelConfig> kernels;
    enumerate(archs, request, [&](const KernelConfig& config) { kernels.push_back(config); });
    return kernels;
}

bool kept_by(const Profile& profile, const KernelConfig& config) {
    return house::keeps(profile, config);
}

void append_name(const Naming& naming, const KernelConfig& config, std::string& out) {
    ops_of(naming.rules).append_name(naming, config, out);
}

std::string name_of(const Naming& naming, const KernelConfig& config) {
    std::string name;
    append_name(naming, config, name);
    return name;
}

Why why(const arch::ArchSet& archs, const Request& request, std::string_view name) {
    check(request);
    const RuleSetOps& ops = ops_of(request.rules);
    Why answer;
    answer.name = std::string(name);
    if (ops.why != nullptr) {
        answer = ops.why(archs, request, name);
    } else {
        std::string shown;
        ops.enumerate(archs, request, [&](const KernelConfig& config) {
            shown.clear();
            ops.append_name({request.rules, request.masks}, config, shown);
            if (shown != name) return;
            answer.listed = true;
            answer.config = config;
        });
    }
    if (!answer.config) compare_with_nearest(archs, request, answer);
    return answer;
}

std::vector<RuleRow> rules_of(RuleSet rules) {
    return ops_of(rules).rules_of();
}

std::string Why::to_string() const {
    std::string text = fmt::format("{}: {}\n", name, listed ? "listed" : "not listed");
    if (!config) {
        text += "  no table entry produces this name\n";
        if (!nearest.empty()) text += fmt::format("  nearest listed name: {}\n", nearest);
    }
    for (const WhyStep& step : steps)
        text += fmt::format("  {} {}: {}\n", step.removes ? "removed by" : "passes", step.id, step.text);
    return text;
}

FamilySet families_of(ApiFamily api) {
    FamilySet families = FamilySet::none();
    for (const KernelFamily stage : traits_of(api).stages) families.add(stage);
    return families;
}

} // namespace fmha::catalog
