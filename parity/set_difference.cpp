#include "parity/set_difference.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace fmha::parity {
namespace {

std::vector<std::string_view> tokens_of(std::string_view name) {
    std::vector<std::string_view> tokens;
    while (true) {
        const auto end = name.find('_');
        tokens.push_back(name.substr(0, end));
        if (end == std::string_view::npos) return tokens;
        name.remove_prefix(end + 1);
    }
}

/// The name with its token `index` left out; the place stays visible so that only like is paired with like.
std::string without_token(const std::vector<std::string_view>& tokens, std::size_t index,
                          std::string_view mark) {
    std::string text;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (i > 0) text += '_';
        text += i == index ? mark : tokens[i];
    }
    return text;
}

/// All sorted names of `sorted`, each once; names seen again go to `duplicates`.
std::vector<std::string> sorted_unique(std::vector<std::string> names, std::vector<std::string>& duplicates) {
    std::sort(names.begin(), names.end());
    std::vector<std::string> unique;
    unique.reserve(names.size());
    for (auto& name : names) {
        if (!unique.empty() && unique.back() == name) {
            if (duplicates.empty() || duplicates.back() != name) duplicates.push_back(name);
        } else {
            unique.push_back(std::move(name));
        }
    }
    return unique;
}

/// The shortest beginning of whole tokens that no name in the sorted list has.
std::string parting_beginning(std::string_view name, const std::vector<std::string>& others) {
    const auto at = std::lower_bound(others.begin(), others.end(), name);
    std::size_t shared =
        0; // longest common beginning with any other name: a neighbour in sorted order has it
    const auto measure = [&](const std::string& other) {
        const auto limit = std::min(name.size(), other.size());
        std::size_t n = 0;
        while (n < limit && name[n] == other[n]) ++n;
        // A token that only begins alike is a different token.
        if (n > 0 && n < name.size() && (n < other.size() || name[n] != '_')) {
            const auto underscore = name.rfind('_', n - 1);
            n = underscore == std::string_view::npos ? 0 : underscore;
        }
        shared = std::max(shared, n);
    };
    if (at != others.end()) measure(*at);
    if (at != others.begin()) measure(*std::prev(at));
    return std::string(name.substr(0, name.find('_', shared + 1)));
}

std::vector<NameGroup> grouped(const std::vector<std::string>& names,
                               const std::vector<std::string>& others) {
    std::vector<NameGroup> groups;
    std::unordered_map<std::string, std::size_t> index;
    for (const std::string& name : names) {
        auto beginning = parting_beginning(name, others);
        const auto [entry, is_new] = index.try_emplace(beginning, groups.size());
        if (is_new) groups.push_back({std::move(beginning), {}, {}});
        groups[entry->second].names.push_back(name);
    }
    return groups;
}

/// Moves pairs that differ in one token out of `lost` and `gained`.
class RenameFinder {
  public:
    RenameFinder(std::vector<std::string>& lost, std::vector<std::string>& gained)
        : lost_(lost), gained_(gained) {}

    std::vector<RenameGroup> take() {
        for (std::size_t i = 0; i < gained_.size(); ++i) index(gained_[i], i);
        // Candidates: (lost, gained) with the tokens that differ. Ambiguity on either side is no rename.
        std::map<std::size_t, std::set<std::size_t>> of_lost;
        std::map<std::size_t, std::set<std::size_t>> of_gained;
        for (std::size_t i = 0; i < lost_.size(); ++i)
            for (const std::size_t g : partners(lost_[i])) {
                of_lost[i].insert(g);
                of_gained[g].insert(i);
            }
        std::map<std::pair<std::string, std::string>, RenameGroup> groups;
        std::unordered_set<std::string> gone;
        for (const auto& [l, candidates] : of_lost) {
            if (candidates.size() != 1 || of_gained[*candidates.begin()].size() != 1) continue;
            const std::string& from = lost_[l];
            const std::string& to = gained_[*candidates.begin()];
            auto key = changed_tokens(from, to);
            RenameGroup& group = groups[key];
            group.from = key.first;
            group.to = key.second;
            group.names.emplace_back(from, to);
            gone.insert(from);
            gone.insert(to);
        }
        std::erase_if(lost_, [&](const std::string& name) { return gone.contains(name); });
        std::erase_if(gained_, [&](const std::string& name) { return gone.contains(name); });
        std::vector<RenameGroup> list;
        list.reserve(groups.size());
        for (auto& [key, group] : groups) list.push_back(std::move(group));
        return list;
    }

  private:
    static constexpr std::string_view replaced = "\x01";

    void index(const std::string& name, std::size_t number) {
        const auto tokens = tokens_of(name);
        whole_.emplace(name, number);
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            holes_.emplace(without_token(tokens, i, replaced), number);
            shorter_.emplace(shortened(name, tokens, i), number);
        }
    }

    static std::string shortened(const std::string& name, const std::vector<std::string_view>& tokens,
                                 std::size_t i) {
        const auto start = static_cast<std::size_t>(tokens[i].data() - name.data());
        std::string text = name;
        if (i > 0)
            text.erase(start - 1, tokens[i].size() + 1);
        else
            text.erase(0, std::min(tokens[i].size() + 1, text.size()));
        return text;
    }

    std::set<std::size_t> partners(const std::string& name) const {
        std::set<std::size_t> found;
        const auto tokens = tokens_of(name);
        const auto collect = [&](const auto& table, const std::string& key) {
            const auto [begin, end] = table.equal_range(key);
            for (auto at = begin; at != end; ++at) found.insert(at->second);
        };
        collect(shorter_, name); // the new name has one token more
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            collect(holes_, without_token(tokens, i, replaced));
            collect(whole_, shortened(name, tokens, i));
        }
        return found;
    }

    static std::pair<std::string, std::string> changed_tokens(const std::string& from,
                                                              const std::string& to) {
        const auto a = tokens_of(from);
        const auto b = tokens_of(to);
        std::size_t front = 0;
        while (front < a.size() && front < b.size() && a[front] == b[front]) ++front;
        std::size_t back = 0;
        while (back + front < a.size() && back + front < b.size() &&
               a[a.size() - 1 - back] == b[b.size() - 1 - back])
            ++back;
        const auto middle = [&](const auto& tokens) {
            return front + back < tokens.size() ? std::string(tokens[front]) : std::string();
        };
        return {middle(a), middle(b)};
    }

    std::vector<std::string>& lost_;
    std::vector<std::string>& gained_;
    std::unordered_multimap<std::string, std::size_t> whole_, holes_, shorter_;
};

/// Above this many lost and gained names a comparison is of different lists, and pairing them says nothing.
constexpr std::size_t most_renames = 20'000;

std::size_t total(const auto& groups) {
    std::size_t count = 0;
    for (const auto& group : groups) count += group.names.size();
    return count;
}

std::string family_of(std::string_view name) {
    // Everything before the first token that has a digit: "fmha_fwd_splitkv".
    std::string text;
    for (const auto token : tokens_of(name)) {
        if (token.find_first_of("0123456789") != std::string_view::npos) break;
        if (!text.empty()) text += '_';
        text += token;
    }
    return text;
}

void explain_groups(std::vector<NameGroup>& groups, const CauseOf& cause_of, std::size_t limit) {
    std::vector<NameGroup> merged;
    std::map<std::pair<std::string, std::string>, std::size_t> by_cause;
    for (auto& group : groups) {
        if (limit == 0) {
            merged.push_back(std::move(group));
            continue;
        }
        --limit;
        group.cause = cause_of(group.names.front());
        const auto [entry, is_new] =
            by_cause.try_emplace({family_of(group.names.front()), group.cause}, merged.size());
        if (is_new) {
            merged.push_back(std::move(group));
            continue;
        }
        NameGroup& into = merged[entry->second];
        std::size_t same = 0;
        while (same < into.beginning.size() && same < group.beginning.size() &&
               into.beginning[same] == group.beginning[same])
            ++same;
        into.beginning.resize(same);
        into.names.insert(into.names.end(), group.names.begin(), group.names.end());
    }
    groups = std::move(merged);
}

} // namespace

std::size_t SetDifference::lost_count() const {
    return total(lost);
}
std::size_t SetDifference::gained_count() const {
    return total(gained);
}
std::size_t SetDifference::renamed_count() const {
    return total(renamed);
}

SetDifference difference(std::vector<std::string> expected, std::vector<std::string> actual,
                         Renames renames) {
    SetDifference result;
    result.expected = expected.size();
    result.actual = actual.size();
    const auto before = sorted_unique(std::move(expected), result.duplicates);
    const auto after = sorted_unique(std::move(actual), result.duplicates);
    std::vector<std::string> lost;
    std::vector<std::string> gained;
    std::set_difference(before.begin(), before.end(), after.begin(), after.end(), std::back_inserter(lost));
    std::set_difference(after.begin(), after.end(), before.begin(), before.end(), std::back_inserter(gained));
    if (renames == Renames::pair && !lost.empty() && !gained.empty() &&
        lost.size() + gained.size() <= most_renames)
        result.renamed = RenameFinder(lost, gained).take();
    result.lost = grouped(lost, after);
    result.gained = grouped(gained, before);
    return result;
}

void explain(SetDifference& difference, const CauseOf& lost_cause, const CauseOf& gained_cause,
             std::size_t limit) {
    explain_groups(difference.lost, lost_cause, limit);
    explain_groups(difference.gained, gained_cause, limit);
}

} // namespace fmha::parity
