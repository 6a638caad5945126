#include "kernels/generator/loop_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

namespace fmha::generator {
namespace {

using built::LoopIteration;
using built::LoopModel;
using built::LoopUnit;

std::string group_of(const KernelConfig& config) {
    const Signature& s = config.signature;
    const Tile& tile = config.algorithm.tile;
    return fmt::format("{} {} {} h{}x{} {} t{}x{}", config.arch.view(), to_string(s.family),
                       to_string(s.data_type), s.hdim_q, s.hdim_v, to_string(config.algorithm.pipeline),
                       tile.m0, tile.n0);
}

/// "12, 96 of 98": the cycles of conflicts, and of how many accesses they are.
std::string conflicts(const LoopIteration& each) {
    return fmt::format("{}, {} of {}", each.conflict_cycles, each.lds_followed,
                       each[LoopUnit::lds].instructions);
}
std::string distance(const built::Distances& waits) {
    if (waits.waits == 0) return "–";
    return fmt::format("{} by {}", waits.waits, waits.cycles / waits.waits);
}

void add_iteration(std::string& page, std::string_view name, const LoopModel& loop,
                   const LoopIteration& each) {
    fmt::format_to(std::back_inserter(page), "| {} | {:.1f} |", name, built::vector_a_score(loop, each));
    for (const auto& [unit, unused] : built::loop_units)
        fmt::format_to(std::back_inserter(page), " {} / {} |", each[unit].instructions, each[unit].cycles);
    fmt::format_to(
        std::back_inserter(page),
        " {} | {} | {} | {} | {} | {} | {} of {}, {} | {} | {} | {} | {:.2f} | {:.2f} | {:.2f} |\n",
        each.lds_bytes, conflicts(each), each.memory_bytes, each.moves, each.wide_integers, each.selects,
        each.early_waits, each.waits, each.missing_cycles, distance(each.behind_memory),
        distance(each.behind_lds), each.wave_cycles, built::busy_alone(each),
        built::busy_together(each, loop.waves), built::busy_waiting(each, loop.waves));
}

constexpr std::string_view introduction = R"(# Loops over keys

One iteration in one wave, by the machine code. A cell of a unit is instructions / cycles; cycles of what SIMDs share (LDS, memory) are
counted for all of them. `plain`: every key of the tile is seen. `masked`: every score is compared with the mask.

- a score: vector and transcendental instructions a score and lane
- moves, wide, selects: copies of registers, 64-bit integer instructions, selections by a predicate
- conflicts: cycles that conflicts of LDS's banks cost beside those of `lds`, if lanes are served in the order of their numbers; and of how many
  accesses the addresses follow from the code. No bound has these cycles
- waits: those that come before the latency of what they wait for has passed, of all; the cycles that are missing
- behind memory, behind LDS: how many of the waits are for it, and the cycles, on average, since the newest access that they wait for
- alone, together: the share of time that the matrix unit is busy at most: in one wave that does nothing else during its
  products; and with the waves that a SIMD holds, where the bound is the busiest unit or the time to issue one wave's instructions
- wave: cycles that a wave needs in order, with its waits, when it has its SIMD for itself; waiting: together, where those of the
  waves that a SIMD holds are a bound as well
- llvm-mca: cycles of one wave in order, all loads hitting; 0: it was not asked or gave no answer (it models gfx90a, gfx942 and gfx950)

)";

} // namespace

std::vector<LoopRow> loop_rows(const built::Manifest& manifest) {
    std::map<std::string, LoopRow> rows;
    built::each_loop(manifest, [&](const built::BuiltKernel& kernel, const LoopModel& loop,
                                   const built::CodeObject&) {
        const std::string what = group_of(kernel.config);
        const double a_score = built::vector_a_score(loop, loop.plain),
                     busy = built::busy_waiting(loop.plain, loop.waves);
        LoopRow& row = rows.try_emplace(what, LoopRow{what, 0, a_score, a_score, busy, busy}).first->second;
        ++row.kernels;
        row.fewest_a_score = std::min(row.fewest_a_score, a_score);
        row.most_a_score = std::max(row.most_a_score, a_score);
        row.least_busy = std::min(row.least_busy, busy);
        row.most_busy = std::max(row.most_busy, busy);
    });
    std::vector<LoopRow> all;
    all.reserve(rows.size());
    for (auto& [what, row] : rows) all.push_back(std::move(row));
    return all;
}

std::string loop_page(const built::Manifest& manifest) {
    std::string page;
    built::each_loop(manifest, [&](const built::BuiltKernel& kernel, const LoopModel& loop,
                                   const built::CodeObject&) {
        if (page.empty()) page = introduction;
        fmt::format_to(std::back_inserter(page),
                       "## {}\n\n{} scores a lane, {} waves a SIMD, {} vector and {} accumulation registers; "
                       "llvm-mca: {}\n\n",
                       kernel.name, loop.scores, loop.waves, kernel.resources->vgprs, kernel.resources->agprs,
                       loop.second_opinion);
        page += "| iteration | a score |";
        for (const auto& [unused, name] : built::loop_units)
            fmt::format_to(std::back_inserter(page), " {} |", name);
        page += " LDS bytes | conflicts | memory bytes | moves | wide | selects | waits | behind memory | "
                "behind LDS | "
                "wave | alone | "
                "together | waiting |\n|---|---|";
        for (std::size_t i = 0; i < built::loop_units.size() + 13; ++i) page += "---|";
        page += '\n';
        add_iteration(page, "plain", loop, loop.plain);
        add_iteration(page, "masked", loop, loop.masked);
        page += '\n';
    });
    return page;
}

} // namespace fmha::generator
