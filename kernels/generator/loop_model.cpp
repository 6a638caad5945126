#include "kernels/generator/loop_model.hpp"

#include "dispatcher/types/error.hpp"
#include "dispatcher/types/family_traits.hpp"
#include "kernels/generator/access_waits.hpp"
#include "kernels/generator/bank_conflicts.hpp"
#include "kernels/generator/flow_graph.hpp"
#include "kernels/generator/unit_rates.hpp"
#include "kernels/generator/wave_time.hpp"
#include "kernels/targets/hip/block_shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>

namespace fmha::generator {
namespace {

using built::LoopIteration;
using built::LoopUnit;

/// The demand of a block, as far as paths are chosen by it.
struct BlockCost {
    std::int64_t matrix = 0, bytes = 0, vector_cycles = 0, selects = 0;
};

BlockCost block_cost(std::span<const Instruction> code, const ArchName& arch, const UnitRates& rates) {
    BlockCost sum;
    for (const Instruction& instruction : code) {
        const InstructionCost cost = cost_of(instruction.mnemonic, instruction.operands, arch, rates);
        sum.matrix += cost.unit == LoopUnit::matrix ? 1 : 0;
        sum.bytes += cost.memory_bytes + cost.lds_bytes;
        sum.selects += cost.select ? 1 : 0;
        sum.vector_cycles += (cost.unit == LoopUnit::matrix ? 0 : cost.slots) +
                             (cost.unit == LoopUnit::vector ? cost.cycles : 0) +
                             (cost.unit == LoopUnit::branch || cost.unit == LoopUnit::scalar ? 1 : 0);
    }
    return sum;
}

/// The innermost loops that hold matrix instructions.
void matrix_loops(const Loop& loop, std::span<const BlockCost> costs, std::vector<const Loop*>& found) {
    const auto before = found.size();
    for (const Loop& inner : loop.inner) matrix_loops(inner, costs, found);
    if (found.size() > before) return;
    if (std::any_of(loop.body.begin(), loop.body.end(), [&](std::size_t b) { return costs[b].matrix > 0; }))
        found.push_back(&loop);
}

struct Path {
    std::vector<std::size_t> blocks;
    BlockCost cost;
};

/// The path through a loop that has most products, stays out of inner loops, moves most bytes and needs least besides; `masked`: the
/// one with most selections among those.
Path path_of(std::span<const Block> blocks, std::span<const BlockCost> costs, const Loop& loop, bool masked) {
    Path path;
    path.blocks = heaviest_path(blocks, loop, [&](std::size_t b, bool in_inner_loop) {
        const BlockCost& cost = costs[b];
        return Weight{cost.matrix, in_inner_loop ? -1 : 0, masked ? cost.selects : 0, cost.bytes,
                      -cost.vector_cycles};
    });
    for (const std::size_t b : path.blocks) {
        path.cost.matrix += costs[b].matrix;
        path.cost.selects += costs[b].selects;
        path.cost.vector_cycles += costs[b].vector_cycles;
    }
    return path;
}

/// Of all loops with as many products as any, the plain path that needs least, and the masked one that selects most.
struct ChosenPaths {
    Path plain, masked;
};
ChosenPaths chosen_paths(std::span<const Block> blocks, std::span<const BlockCost> costs,
                         std::span<const Loop* const> loops) {
    std::optional<ChosenPaths> chosen;
    for (const Loop* loop : loops) {
        Path plain = path_of(blocks, costs, *loop, false), masked = path_of(blocks, costs, *loop, true);
        if (chosen && plain.cost.matrix < chosen->plain.cost.matrix) continue;
        if (!chosen || plain.cost.matrix > chosen->plain.cost.matrix) {
            chosen = {std::move(plain), std::move(masked)};
            continue;
        }
        if (plain.cost.vector_cycles < chosen->plain.cost.vector_cycles) chosen->plain = std::move(plain);
        if (masked.cost.selects > chosen->masked.cost.selects) chosen->masked = std::move(masked);
    }
    return *std::move(chosen);
}

/// Accesses under way, oldest first, by the cycle in which each was issued.
class UnderWay {
  public:
    void add(std::int64_t now) { issued_.push_back(now); }
    /// Waits until `left` are under way; returns the cycles since the newest of the others, nullopt when there is none.
    std::optional<std::int64_t> wait(std::int64_t left, std::int64_t now) {
        std::optional<std::int64_t> since;
        while (static_cast<std::int64_t>(issued_.size()) > left) {
            since = now - issued_.front();
            issued_.pop_front();
        }
        return since;
    }

  private:
    std::deque<std::int64_t> issued_;
};

/// Adds the waits of a path to `sum`. The path is gone through twice, because an iteration waits for work that the one before it
/// began.
void add_waits(std::span<const Instruction> path, const ArchName& arch, const UnitRates& rates,
               LoopIteration& sum) {
    UnderWay memory, lds;
    std::int64_t now = 0;
    for (const bool counts : {false, true})
        for (const Instruction& instruction : path) {
            const InstructionCost cost = cost_of(instruction.mnemonic, instruction.operands, arch, rates);
            if (cost.unit == LoopUnit::memory) memory.add(now);
            if (cost.unit == LoopUnit::lds) lds.add(now);
            const AccessWait wait = access_wait_of(instruction);
            const auto check = [&](UnderWay& queue, std::optional<std::int64_t> left, int latency,
                                   built::Distances& distances) {
                if (!left) return;
                const auto since = queue.wait(*left, now);
                if (!since || !counts) return;
                ++sum.waits;
                ++distances.waits;
                distances.cycles += *since;
                if (*since >= latency) return;
                ++sum.early_waits;
                sum.missing_cycles += latency - *since;
            };
            check(memory, wait.memory, rates.memory_latency, sum.behind_memory);
            check(lds, wait.lds, rates.lds_latency, sum.behind_lds);
            // Time of memory and of LDS is not the wave's own.
            const bool shared = cost.unit == LoopUnit::memory || cost.unit == LoopUnit::lds;
            now += shared ? rates.scalar : cost.cycles;
        }
}

} // namespace

LoopPaths loop_paths(std::span<const Instruction> code, const ArchName& arch, const std::string& where) {
    const UnitRates rates = rates_of(arch);
    const std::vector<Block> blocks = blocks_of(code, where);
    std::vector<BlockCost> costs;
    costs.reserve(blocks.size());
    for (const Block& block : blocks)
        costs.push_back(block_cost(code.subspan(block.begin, block.end - block.begin), arch, rates));

    const std::vector<Loop> loops = loops_of(blocks);
    std::vector<const Loop*> candidates;
    for (const Loop& loop : loops) matrix_loops(loop, costs, candidates);
    if (candidates.empty()) throw InputError(fmt::format("{}: no loop holds a matrix instruction", where));

    std::vector<std::optional<LaneValues>> addresses(code.size());
    if (!is_nvidia(arch)) addresses = lds_addresses(code, blocks, rates.lanes);
    const auto instructions_of = [&](const Path& path) {
        std::vector<Instruction> all;
        for (const std::size_t b : path.blocks)
            for (std::size_t i = blocks[b].begin; i < blocks[b].end; ++i) {
                Instruction& each = all.emplace_back(code[i]);
                if (!addresses[i]) continue;
                const auto cost = cost_of(each.mnemonic, each.operands, arch, rates);
                each.conflicts =
                    conflict_cycles(*addresses[i], each.mnemonic, cost.lds_bytes, rates.lds_bytes / 4);
            }
        return all;
    };
    const ChosenPaths chosen = chosen_paths(blocks, costs, candidates);
    return {instructions_of(chosen.plain), instructions_of(chosen.masked)};
}

LoopIteration iteration_of(std::span<const Instruction> path, const ArchName& arch) {
    const UnitRates rates = rates_of(arch);
    LoopIteration sum;
    for (const Instruction& instruction : path) {
        const InstructionCost cost = cost_of(instruction.mnemonic, instruction.operands, arch, rates);
        ++sum[cost.unit].instructions;
        sum[cost.unit].cycles += cost.cycles;
        sum[LoopUnit::vector].cycles += cost.slots;
        const bool accesses = cost.unit == LoopUnit::lds || cost.unit == LoopUnit::memory;
        sum.matrix_slots += cost.unit == LoopUnit::matrix ? cost.slots : 0;
        sum.access_slots += accesses ? rates.scalar : 0;
        sum.products += cost.products;
        sum.lds_bytes += cost.lds_bytes;
        if (cost.unit == LoopUnit::lds && instruction.conflicts >= 0) {
            ++sum.lds_followed;
            sum.conflict_cycles += instruction.conflicts * rates.simds;
        }
        sum.memory_bytes += cost.memory_bytes;
        sum.moves += cost.move ? 1 : 0;
        sum.wide_integers += cost.wide ? 1 : 0;
        sum.selects += cost.select ? 1 : 0;
    }
    add_waits(path, arch, rates, sum);
    sum.wave_cycles = wave_cycles(path, arch, rates);
    return sum;
}

built::LoopModel loop_model(const LoopPaths& paths, const KernelConfig& config, std::int64_t waves) {
    const Tile& tile = config.algorithm.tile;
    const hip_target::BlockShape shape = hip_target::block_shape(config);
    const bool backward = traits_of(config.signature.family).products == MatrixProducts::five;
    // On RDNA several waves of backward have the same scores, and a share of the channels each.
    const std::int64_t copies = backward ? config.algorithm.wave.n1 : 1;
    built::LoopModel model;
    model.scores = copies * tile.m0 * tile.n0 / shape.threads;
    model.waves = waves;
    model.plain = iteration_of(paths.plain, config.arch);
    model.masked = iteration_of(paths.masked, config.arch);
    // S and dQ, dK of the channels of K, dP and dV of those of V; S and dP are what waves with the same scores compute each.
    const std::int64_t depth =
        backward ? (copies + 2) * tile.b7 + (copies + 1) * tile.b8 : tile.k0max + tile.n1;
    const std::int64_t expected = 2 * std::int64_t{tile.m0} * tile.n0 * depth / shape.waves;
    for (const LoopIteration* iteration : {&model.plain, &model.masked})
        if (iteration->products != expected)
            throw InputError(
                fmt::format("a path through the loop over {} multiplies {} times, a tile needs {}",
                            backward ? "rows" : "keys", iteration->products / 2, expected / 2));
    return model;
}

} // namespace fmha::generator
