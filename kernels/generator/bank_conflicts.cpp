#include "kernels/generator/bank_conflicts.hpp"

#include <algorithm>
#include <set>
#include <vector>

namespace fmha::generator {

std::int64_t conflict_cycles(const LaneValues& addresses, std::string_view mnemonic, int lane_bytes,
                             int banks) {
    constexpr std::uint32_t word = 4;
    const auto has = [&](std::string_view part) { return mnemonic.find(part) != std::string_view::npos; };
    if (has("permute") || has("swizzle")) return 0; // lanes' registers, no memory
    const int accesses = has("read2") || has("write2") || has("_2addr") ? 2 : 1,
              bytes = lane_bytes / accesses;
    const std::size_t words = static_cast<std::size_t>(std::max(bytes, 4)) / word,
                      at_once = std::max<std::size_t>(static_cast<std::size_t>(banks) / words, 1);
    std::int64_t more = 0;
    for (std::size_t first = 0; first < addresses.size(); first += at_once) {
        std::vector<std::set<std::uint32_t>> asked(static_cast<std::size_t>(banks));
        for (std::size_t lane = first; lane < std::min(first + at_once, addresses.size()); ++lane)
            for (std::uint32_t w = 0; w < words; ++w) {
                const std::uint32_t at = addresses[lane] / word + w;
                asked[at % static_cast<std::uint32_t>(banks)].insert(at);
            }
        std::size_t most = 1;
        for (const auto& bank : asked) most = std::max(most, bank.size());
        more += static_cast<std::int64_t>(most) - 1;
    }
    return accesses * more;
}

} // namespace fmha::generator
