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
            const std::int64_t tile_rows = config.algorithm.tile.m0;
            std::set<QueryRow> tiles; // first rows
            for (const QueryRow& row : args.wanted)
                tiles.insert({row.b, row.h, row.i / tile_rows * tile_rows});
            const Forward::Grid all(config, args);
            for (std::int64_t n = 0; n < all.size(); ++n)
                if (const Item item = all[n]; tiles.contains({item.b, item.h, item.q_tile * tile_rows}))
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
