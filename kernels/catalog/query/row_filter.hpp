#pragma once

#include "dispatcher/types/kernel_config.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fmha::catalog {

struct FilterLimits {
    std::size_t expression_bytes = 16 * 1024;
    std::chrono::milliseconds time{30'000}; ///< spent inside `select`, all calls together
};

/// An expression over one catalogue record, called `c`, as upstream's Python filters have it:
///
///     c.hdim_q == 128 and 64 <= c.tile_m0 < 256 and 'async' in c.pipeline and not c.dropout
///
/// `sql_of` reads it; SQLite executes it over one read-only virtual table.
class RowFilter {
  public:
    /// Appends the name of a record, for expressions that use `c.name`.
    using NameOf = std::function<void(const KernelConfig& config, std::string& name)>;

    /// Throws InputError that names the expression, the place in it and the mistake.
    RowFilter(std::string_view expression, NameOf name_of, FilterLimits limits = {});
    ~RowFilter();
    RowFilter(RowFilter&&) noexcept;
    RowFilter& operator=(RowFilter&&) noexcept;
    RowFilter(const RowFilter&) = delete;
    RowFilter& operator=(const RowFilter&) = delete;

    /// Calls `hit(index)` in ascending order for every record for which the expression is true.
    /// Throws InputError when the time limit is exceeded or the expression fails at run time.
    void select(std::span<const KernelConfig> records, const std::function<void(std::size_t)>& hit);

  private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace fmha::catalog
