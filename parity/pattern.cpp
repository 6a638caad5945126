#include "parity/pattern.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace fmha::parity {
namespace {

using Set = std::vector<std::string_view>; // sorted, no repetitions

std::string_view first_token(std::string_view ending) {
    const auto next = ending.find('_', 1);
    return ending.substr(0, next);
}

std::string alternatives(const std::vector<std::string>& texts) {
    if (texts.size() == 1) return texts.front();
    return fmt::format("({})", fmt::join(texts, "|"));
}

/// Writes sets that are the same once; the rests of a product are the same at every branch.
class PatternWriter {
  public:
    std::string write(const Set& set) {
        if (set.empty() || (set.size() == 1 && set.front().empty())) return {};
        if (const auto known = known_.find(set); known != known_.end()) return known->second;
        std::string text = write_new(set);
        known_.emplace(set, text);
        return text;
    }

  private:
    std::string write_new(const Set& set) {
        std::map<std::string_view, Set> rest_of;
        for (const auto ending : set) {
            if (ending.empty()) continue;
            const auto token = first_token(ending);
            rest_of[token].push_back(ending.substr(token.size()));
        }
        // A token that may be absent: its successors are also there without it.
        for (const auto& [token, rest] : rest_of) {
            if (rest.size() * 2 != set.size()) continue;
            Set others;
            for (const auto ending : set)
                if (ending.empty() || first_token(ending) != token) others.push_back(ending);
            if (others == rest) return fmt::format("[{}]{}", token, write(rest));
        }
        // Tokens with the same rest are one choice.
        std::map<Set, std::vector<std::string>> tokens_of;
        for (const auto& [token, rest] : rest_of) tokens_of[rest].emplace_back(token);
        std::vector<std::string> branches;
        branches.reserve(tokens_of.size());
        for (const auto& [rest, tokens] : tokens_of) branches.push_back(alternatives(tokens) + write(rest));
        std::sort(branches.begin(), branches.end());
        const auto text = alternatives(branches);
        return set.front().empty() ? fmt::format("[{}]", text) : text;
    }

    std::map<Set, std::string> known_;
};

class PatternReader {
  public:
    explicit PatternReader(std::string_view pattern) : pattern_(pattern) {}

    std::vector<std::string> read() {
        auto all = choice();
        if (at_ != pattern_.size()) fail("closes nothing");
        return all;
    }

  private:
    [[noreturn]] void fail(std::string_view what) const {
        throw InputError(fmt::format("pattern \"{}\", character {}: {}", pattern_, at_ + 1, what));
    }

    std::vector<std::string> choice() {
        auto all = sequence();
        while (at_ < pattern_.size() && pattern_[at_] == '|') {
            ++at_;
            auto more = sequence();
            all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
        }
        return all;
    }

    std::vector<std::string> sequence() {
        std::vector<std::string> all{std::string()};
        while (at_ < pattern_.size()) {
            const char c = pattern_[at_];
            if (c == '|' || c == ')' || c == ']') break;
            if (c == '(' || c == '[') {
                ++at_;
                auto parts = choice();
                if (c == '[') parts.emplace_back();
                if (at_ == pattern_.size() || pattern_[at_] != (c == '(' ? ')' : ']'))
                    fail("a bracket is not closed");
                ++at_;
                all = product(all, parts);
                continue;
            }
            const auto end = std::min(pattern_.find_first_of("()[]|", at_), pattern_.size());
            for (std::string& text : all) text += pattern_.substr(at_, end - at_);
            at_ = end;
        }
        return all;
    }

    static std::vector<std::string> product(const std::vector<std::string>& left,
                                            const std::vector<std::string>& right) {
        std::vector<std::string> all;
        all.reserve(left.size() * right.size());
        for (const auto& l : left)
            for (const auto& r : right) all.push_back(l + r);
        return all;
    }

    std::string_view pattern_;
    std::size_t at_ = 0;
};

} // namespace

std::string write_pattern(std::vector<std::string> endings) {
    std::sort(endings.begin(), endings.end());
    endings.erase(std::unique(endings.begin(), endings.end()), endings.end());
    return PatternWriter().write(Set(endings.begin(), endings.end()));
}

std::vector<std::string> expand_pattern(std::string_view pattern) {
    return PatternReader(pattern).read();
}

} // namespace fmha::parity
