#pragma once

#include "dispatcher/types/kernel_config.hpp"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace fmha::catalog {

/// One cell of the catalogue; a value that is neither a number nor true or false is text.
using Cell = std::variant<std::int64_t, std::string_view, bool>;

/// A column of the table `c` that filter expressions see.
struct Column {
    std::string name;
    /// Reads the cell; `scratch` backs text that the record does not hold itself and lives as long as the
    /// cell.
    std::function<Cell(const KernelConfig& config, std::string& scratch)> read;
    /// For text of numbers that upstream has as a tuple: the characters between two of them; empty when each has one
    /// digit.
    std::optional<std::string_view> tuple_separator{};
};

/// Every column but `name`. First come the fields that upstream's documents promise, with upstream's names and values: `mask` is
/// `no`, `top_left` or `generic`, `bias` is `no`, `bias` or `alibi`, `vlayout` is `r` or `c`. Then comes our own field list:
/// `mask_class`, `bias_type`, `has_lse`, `tile_m0`, `wave_m0`, `constraint`, …
std::span<const Column> columns();

} // namespace fmha::catalog
