#pragma once

#include "dispatcher/types/json.hpp"
#include "kernels/arch/arch.hpp"
#include "kernels/catalog/catalog.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace fmha::cli {

/// The kernels of the working list (rule set `house`) for families on architectures, and the targets that execute them: kernels by
/// family, architecture and data type.
class SupportTable {
  public:
    SupportTable(const arch::ArchSet& archs, const std::vector<ArchName>& on, catalog::FamilySet families);

    /// A table for each family: a row an architecture, a column a data type; then a line that explains the letters.
    std::string to_text() const;
    /// [{"family", "arch", "data_type", "kernels", "host", "emulated", "gpu"}, …], numbers of kernels.
    Json to_json() const;

  private:
    struct Cell {
        std::int64_t kernels = 0;
        /// How many of them the host runs, the emulated machine runs, and `fmha generate` does not decline.
        std::array<std::int64_t, 3> executed{};
    };
    static constexpr std::size_t types = EnumTable<DataType>::names.size();
    struct Row {
        KernelFamily family;
        ArchName arch;
        std::array<Cell, types> cells{};
    };
    static std::string letters(const Cell& cell);

    std::vector<Row> rows_;
};

} // namespace fmha::cli
