#include "kernels/generator/sample.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <string>
#include <unordered_map>

namespace fmha::generator {
namespace {

using Goal = std::uint32_t;

/// The number of a text, in order of first appearance.
class Numbering {
  public:
    Goal of(const std::string& text) {
        return numbers_.try_emplace(text, static_cast<Goal>(numbers_.size())).first->second;
    }

  private:
    std::unordered_map<std::string, Goal> numbers_;
};

/// Kernels as rows of level numbers, one level for each feature that an engineer would vary alone.
std::vector<std::vector<std::string>> feature_levels(std::span<const KernelConfig> kernels) {
    std::vector<std::vector<std::string>> rows;
    rows.reserve(kernels.size());
    for (const KernelConfig& config : kernels) {
        const Signature& s = config.signature;
        const Algorithm& a = config.algorithm;
        std::vector<std::string> row{config.arch.str(), field_text(a.pipeline), identifier(a.pad),
                                     field_text(s.hdim_q) + "x" + field_text(s.hdim_v)};
        each_field(s, [&](std::string_view name, const auto& value) {
            if (name != "hdim_q" && name != "hdim_v") row.push_back(field_text(value));
        });
        rows.push_back(std::move(row));
    }
    return rows;
}

std::string body(const KernelConfig& config) {
    const Signature& s = config.signature;
    return config.arch.str() + '/' + field_text(s.data_type) + '/' + field_text(s.hdim_q) + '/' +
           field_text(s.hdim_v) + '/' + identifier(config.algorithm.tile) + '/' +
           field_text(config.algorithm.pipeline) + '/' + field_text(s.v_layout);
}

/// The goals that every kernel covers, as numbers.
std::vector<std::vector<Goal>> goals_of(std::span<const KernelConfig> kernels, std::size_t& count) {
    Numbering goals;
    Numbering levels;
    std::map<std::pair<Goal, Goal>, Goal> pairs;
    std::vector<std::vector<Goal>> rows;
    rows.reserve(kernels.size());
    const auto features = feature_levels(kernels);
    for (std::size_t k = 0; k < kernels.size(); ++k) {
        std::vector<Goal> row{goals.of("body " + body(kernels[k]))};
        std::vector<Goal> own;
        for (std::size_t f = 0; f < features[k].size(); ++f)
            own.push_back(levels.of(std::to_string(f) + ' ' + features[k][f]));
        for (std::size_t i = 0; i < own.size(); ++i)
            for (std::size_t j = i + 1; j < own.size(); ++j) {
                auto [found, added] = pairs.try_emplace({own[i], own[j]}, 0);
                if (added) found->second = goals.of("pair " + std::to_string(pairs.size()));
                row.push_back(found->second);
            }
        rows.push_back(std::move(row));
    }
    for (const auto& row : rows)
        for (const Goal goal : row) count = std::max<std::size_t>(count, goal + std::size_t{1});
    return rows;
}

} // namespace

std::vector<std::size_t> covering_sample(std::span<const KernelConfig> kernels,
                                         std::optional<std::size_t> limit) {
    std::size_t goal_count = 0;
    const auto goals = goals_of(kernels, goal_count);
    std::vector<char> covered(goal_count, 0);
    const auto gain = [&](std::size_t kernel) {
        return static_cast<std::size_t>(
            std::ranges::count_if(goals[kernel], [&](Goal goal) { return covered[goal] == 0; }));
    };
    // Gains only shrink, so an outdated one is an upper bound: only the head of the queue must be computed again.
    using Claim = std::pair<std::size_t, std::size_t>;
    const auto worse = [](const Claim& a, const Claim& b) {
        return a.first != b.first ? a.first < b.first : a.second > b.second;
    };
    std::priority_queue<Claim, std::vector<Claim>, decltype(worse)> queue(worse);
    for (std::size_t k = 0; k < kernels.size(); ++k) queue.emplace(goals[k].size(), k);
    std::vector<std::size_t> chosen;
    while (!queue.empty() && (!limit || chosen.size() < *limit)) {
        const auto [bound, kernel] = queue.top();
        queue.pop();
        const std::size_t now = gain(kernel);
        if (now == 0) continue;
        if (now < bound) {
            queue.emplace(now, kernel);
            continue;
        }
        chosen.push_back(kernel);
        for (const Goal goal : goals[kernel]) covered[goal] = 1;
    }
    std::ranges::sort(chosen);
    return chosen;
}

std::vector<std::size_t> sample_of_each_family(std::span<const KernelConfig> kernels,
                                               std::optional<std::size_t> limit) {
    struct Part {
        std::vector<std::size_t> positions;
        std::vector<KernelConfig> kernels;
    };
    std::map<KernelFamily, Part> parts;
    for (std::size_t k = 0; k < kernels.size(); ++k) {
        Part& part = parts[kernels[k].signature.family];
        part.positions.push_back(k);
        part.kernels.push_back(kernels[k]);
    }
    std::vector<std::size_t> chosen;
    for (const auto& [family, part] : parts)
        for (const std::size_t k : covering_sample(part.kernels, limit)) chosen.push_back(part.positions[k]);
    std::ranges::sort(chosen);
    return chosen;
}

} // namespace fmha::generator
