#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace fmha {

/// Lines of a table for a terminal: the first column to the left, numbers and other cells to the right, two blanks between columns, or
/// one where the table would be wider than 80 columns. A row may have fewer cells; one without any is an empty line. Cells are ASCII.
inline std::string text_table(const std::vector<std::vector<std::string>>& rows) {
    constexpr std::size_t terminal = 80;
    std::vector<std::size_t> widths;
    for (const auto& row : rows) {
        widths.resize(std::max(widths.size(), row.size()));
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    std::size_t wide = 0;
    for (const std::size_t width : widths) wide += width + 2;
    const std::size_t gap = wide > terminal + 2 ? 1 : 2;
    std::string text;
    for (const auto& row : rows) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            const std::string blanks(widths[i] - row[i].size(), ' ');
            if (i > 0) text.append(gap, ' ');
            text += i == 0 ? row[i] + blanks : blanks + row[i];
        }
        text += '\n';
    }
    return text;
}

} // namespace fmha
