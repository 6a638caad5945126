#include "kernels/targets/host/row_tiles.hpp"

#include "dispatcher/types/error.hpp"
#include "kernels/programs/fmha_fwd.hpp"
#include "kernels/targets/host/executor.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "kernels/targets/launch.hpp"
#include "kernels/targets/with_program.hpp"

#include <fmt/format.h>

#include <set>
#include <type_traits>
#include <utility>
#include <vector>

namespace fmha::host_target {
namespace {

using Forward = kernels::Program<KernelFamily::fwd>;

/// The program of forward over some blocks of its grid.
struct SomeBlocks : Forward {
    struct Args : FwdArgs {
        std::span<const QueryRow> wanted;
    };
    class Grid {
      public:
        Grid(const KernelConfig& config, const Args& args) {
            const auto packed = kernels::HeadRows::of(config, static_cast<const FwdArgs&>(args));
            const std::int64_t most = config.algorithm.tile.m0;
            std::set<QueryRow> tiles; // by their numbers, those of the heads of a tile among them
            for (const QueryRow& row : args.wanted)
                tiles.insert({row.b, row.h / packed.heads(most), row.i / packed.of_head(most)});
            const Forward::Grid all(config, args);
            for (std::int64_t n = 0; n < all.size(); ++n)
                if (const Item item = all[n]; tiles.contains({item.b, item.h, item.q_tile}))
                    items_.push_back(item);
        }
        std::int64_t size() const { return static_cast<std::int64_t>(items_.size()); }
        Item operator[](std::int64_t n) const { return items_[static_cast<std::size_t>(n)]; }

      private:
        std::vector<Item> items_;
    };
};

} // namespace

bool has_row_tiles(const KernelConfig& config) {
    return targets::with_program(config.signature.family,
                                 [](auto program) { return std::is_same_v<decltype(program), Forward>; });
}

std::int64_t most_heads_of_row_tile(const KernelConfig& config) {
    // A KV head with as many query heads as a tile has rows, which lie one behind the other.
    const std::int64_t rows = config.algorithm.tile.m0;
    FwdArgs args;
    args.shape = {.batch = 1, .nhead_q = rows, .nhead_k = 1, .seqlen_q = 1};
    args.q = {nullptr, ElementType::fp16, rows, 1, 1, 1};
    return kernels::HeadRows::of(config, args).heads(rows);
}

void run_row_tiles(const KernelConfig& config, const Invocation& invocation, std::span<const QueryRow> rows,
                   int threads) {
    if (!has_row_tiles(config))
        throw UnsupportedInvocation(fmt::format("kernels of {} are run whole; tiles of rows are those of {}",
                                                to_string(config.signature.family),
                                                to_string(KernelFamily::fwd)));
    if (const auto reason = cannot_execute(config)) throw UnsupportedInvocation(*reason);
    targets::with_launch(config, invocation, targets::Elements::of, [&](auto program, const auto& args) {
        if constexpr (std::is_same_v<decltype(program), Forward>)
            run_blocks(SomeBlocks{}, config, SomeBlocks::Args{args, rows}, {.threads = threads},
                       [&](auto*) { return HostContext(config, nullptr); });
    });
}

} // namespace fmha::host_target
