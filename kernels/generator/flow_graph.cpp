#include "kernels/generator/flow_graph.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace fmha::generator {

std::vector<Block> blocks_of(std::span<const Instruction> code, const std::string& where) {
    std::map<std::uint64_t, std::size_t> at;
    for (std::size_t i = 0; i < code.size(); ++i) at[code[i].address] = i;
    std::set<std::size_t> starts{0};
    for (std::size_t i = 0; i < code.size(); ++i) {
        if (code[i].flow == Flow::next) continue;
        starts.insert(i + 1);
        if (code[i].flow == Flow::end) continue;
        const auto target = at.find(code[i].target);
        if (target == at.end())
            throw InputError(fmt::format("{}: a jump at {:x} to {:x}, where no instruction begins", where,
                                         code[i].address, code[i].target));
        starts.insert(target->second);
    }
    starts.erase(code.size());

    std::vector<Block> blocks;
    std::map<std::size_t, std::size_t> block_at;
    for (const std::size_t start : starts) {
        block_at[start] = blocks.size();
        if (!blocks.empty()) blocks.back().end = start;
        blocks.push_back({start, code.size(), {}});
    }
    for (Block& block : blocks) {
        const Instruction& last = code[block.end - 1];
        if (last.flow == Flow::jump || last.flow == Flow::branch)
            block.next.push_back(block_at.at(at.at(last.target)));
        if (last.flow != Flow::jump && last.flow != Flow::end && block.end < code.size())
            block.next.push_back(block_at.at(block.end));
    }
    return blocks;
}

namespace {

/// Tarjan's strongly connected parts of the blocks `of`, without edges to `cut`; those that hold a cycle.
class Components {
  public:
    Components(std::span<const Block> blocks, std::span<const std::size_t> of, std::optional<std::size_t> cut)
        : blocks_(blocks), inside_(of.begin(), of.end()), cut_(cut) {
        for (const std::size_t block : of)
            if (!states_.contains(block)) visit(block);
    }
    std::vector<std::vector<std::size_t>> cyclic;

  private:
    struct State {
        std::size_t index = 0, lowest = 0;
        bool open = false;
    };
    struct Frame {
        std::size_t block = 0, edge = 0;
    };

    bool follows(std::size_t to) const { return inside_.contains(to) && to != cut_; }

    void visit(std::size_t root) {
        std::vector<Frame> frames{{root, 0}};
        enter(root);
        while (!frames.empty()) {
            Frame& frame = frames.back();
            const auto& next = blocks_[frame.block].next;
            if (frame.edge < next.size()) {
                const std::size_t to = next[frame.edge++];
                if (!follows(to)) continue;
                if (!states_.contains(to)) {
                    enter(to);
                    frames.push_back({to, 0});
                } else if (states_[to].open) {
                    State& state = states_[frame.block];
                    state.lowest = std::min(state.lowest, states_[to].index);
                }
                continue;
            }
            const std::size_t block = frame.block;
            frames.pop_back();
            if (!frames.empty()) {
                State& above = states_[frames.back().block];
                above.lowest = std::min(above.lowest, states_[block].lowest);
            }
            if (states_[block].lowest == states_[block].index) close(block);
        }
    }
    void enter(std::size_t block) {
        const std::size_t index = states_.size();
        states_[block] = {index, index, true};
        open_.push_back(block);
    }
    void close(std::size_t root) {
        std::vector<std::size_t> part;
        do {
            part.push_back(open_.back());
            states_[open_.back()].open = false;
            open_.pop_back();
        } while (part.back() != root);
        const auto& next = blocks_[root].next;
        if (part.size() == 1 && (std::find(next.begin(), next.end(), root) == next.end() || !follows(root)))
            return;
        std::sort(part.begin(), part.end());
        cyclic.push_back(std::move(part));
    }

    std::span<const Block> blocks_;
    std::set<std::size_t> inside_;
    std::optional<std::size_t> cut_;
    std::map<std::size_t, State> states_;
    std::vector<std::size_t> open_;
};

std::vector<Loop> loops_in(std::span<const Block> blocks, std::span<const std::size_t> of,
                           std::optional<std::size_t> cut) {
    std::vector<Loop> loops;
    for (auto& body : Components(blocks, of, cut).cyclic) {
        const std::set<std::size_t> inside(body.begin(), body.end());
        // Where it is entered from elsewhere; a part of the code that nothing enters begins with its first block.
        std::size_t header = body.front();
        for (std::size_t from = 0; from < blocks.size(); ++from) {
            if (inside.contains(from)) continue;
            const auto& next = blocks[from].next;
            const auto entry =
                std::find_if(next.begin(), next.end(), [&](std::size_t to) { return inside.contains(to); });
            if (entry == next.end()) continue;
            header = *entry;
            break;
        }
        auto inner = loops_in(blocks, body, header);
        loops.push_back({header, std::move(body), std::move(inner)});
    }
    std::sort(loops.begin(), loops.end(), [](const Loop& a, const Loop& b) { return a.header < b.header; });
    return loops;
}

} // namespace

std::vector<Loop> loops_of(std::span<const Block> blocks) {
    std::vector<std::size_t> all(blocks.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    return loops_in(blocks, all, std::nullopt);
}

std::vector<std::size_t> heaviest_path(std::span<const Block> blocks, const Loop& loop,
                                       const std::function<Weight(std::size_t, bool)>& weight) {
    const std::set<std::size_t> inside(loop.body.begin(), loop.body.end());
    std::set<std::size_t> inner;
    for (const Loop& each : loop.inner) inner.insert(each.body.begin(), each.body.end());

    // Depth first, so that an edge to a block that is still open closes a cycle and is left out; blocks close after all that
    // they lead to.
    struct Best {
        Weight sum{};
        std::optional<std::size_t> next;
        bool returns = false, closed = false;
    };
    std::map<std::size_t, Best> best;
    struct Frame {
        std::size_t block = 0, edge = 0;
    };
    std::vector<Frame> frames{{loop.header, 0}};
    best[loop.header] = {};
    while (!frames.empty()) {
        Frame& frame = frames.back();
        const auto& next = blocks[frame.block].next;
        if (frame.edge < next.size()) {
            const std::size_t to = next[frame.edge++];
            if (inside.contains(to) && best.try_emplace(to).second) frames.push_back({to, 0});
            continue;
        }
        const std::size_t block = frame.block;
        frames.pop_back();
        Best& own = best[block];
        for (const std::size_t to : next) {
            if (to == loop.header) {
                if (!own.returns) own.returns = true;
                continue;
            }
            if (!inside.contains(to) || !best[to].closed || !best[to].returns) continue;
            if (!own.next || best[to].sum > best[*own.next].sum) own.next = to;
        }
        if (own.next) {
            own.sum = best[*own.next].sum;
            // The edge back to the header ends the path; it wins where every other path behind here weighs less than nothing.
            const bool back = own.returns;
            own.returns = true;
            if (back && Weight{} > own.sum) {
                own.sum = {};
                own.next.reset();
            }
        }
        const Weight mine = weight(block, inner.contains(block));
        for (std::size_t i = 0; i < mine.size(); ++i) own.sum[i] += mine[i];
        own.closed = true;
    }

    std::vector<std::size_t> path;
    for (std::optional<std::size_t> at = loop.header; at; at = best[*at].next) path.push_back(*at);
    return path;
}

} // namespace fmha::generator
