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

/// An SQL expression over one catalogue record, aliased `c`, executed by SQLite:
///
///     c.hdim_q == 128 and c.pipeline == 'qr_async' and not c.dropout
///
/// SQLite sees one read-only virtual table and nothing else: no file, no other statement, no subquery, only
/// functions of values. `in [64, 128]` is accepted for `in (64, 128)`, and "text" for 'text'.
class RowFilter {
  public:
    /// Appends the name of a record, for expressions that use `c.name`.
    using NameOf = std::function<void(const KernelConfig& config, std::string& name)>;

    /// Throws InputError that names the expression and SQLite's message.
    RowFilter(std::string_view expression, NameOf name_of, FilterLimits limits = {});
    ~RowFilter();
    RowFilter(RowFilter&&) noexcept;
    RowFilter& operator=(RowFilter&&) noexcept;
    RowFilter(const RowFilter&) = delete;
    RowFilter& operator=(const RowFilter&) = delete;

    /// Calls `hit(index)` in ascending order for every record for which the expression is true (NULL is not).
    /// Throws InputError when the time limit is exceeded or the expression fails at run time.
    void select(std::span<const KernelConfig> records, const std::function<void(std::size_t)>& hit);

  private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace fmha::catalog
