#include "harness/cli/support_table.hpp"

#include "dispatcher/types/json.hpp"
#include "dispatcher/types/text_table.hpp"
#include "harness/run/catalogue_kernels.hpp"
#include "harness/run/targets.hpp"
#include "kernels/generator/selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace fmha::cli {
namespace {

constexpr std::string_view legend =
    "h: the host computes it, e: the emulated machine does, g: kernels for the GPU\n"
    "are generated; a capital letter for every kernel of the list, a small one for\n"
    "some of them; p: planned, nothing computes it; -: no kernel\n";

} // namespace

SupportTable::SupportTable(const arch::ArchSet& archs, const std::vector<ArchName>& on,
                           catalog::FamilySet families) {
    for (const auto& [family, unused] : EnumTable<KernelFamily>::names)
        for (const ArchName& arch : on)
            if (families.has(family)) rows_.push_back({family, arch});
    for (const ArchName& arch : on) {
        const auto host = harness::make_target("host", {.arch = arch.str(), .kernels_dir = {}});
        const auto emulated = harness::make_target("emulated", {.arch = arch.str(), .kernels_dir = {}});
        const auto request = harness::working_list(arch.str(), archs, families);
        catalog::enumerate(archs, request, [&](const KernelConfig& config) {
            const auto row = std::ranges::find_if(rows_, [&](const Row& one) {
                return one.family == config.signature.family && one.arch == arch;
            });
            Cell& cell = row->cells[static_cast<std::size_t>(config.signature.data_type)];
            ++cell.kernels;
            cell.executed[0] += host->cannot_execute(config) ? 0 : 1;
            cell.executed[1] += emulated->cannot_execute(config) ? 0 : 1;
            cell.executed[2] += generator::declined(config) ? 0 : 1;
        });
    }
}

std::string SupportTable::letters(const Cell& cell) {
    if (cell.kernels == 0) return "-";
    std::string text;
    for (std::size_t target = 0; target < cell.executed.size(); ++target)
        if (cell.executed[target] > 0)
            text += (cell.executed[target] == cell.kernels ? "HEG" : "heg")[target];
    return text.empty() ? "p" : text;
}

std::string SupportTable::to_text() const {
    std::vector<std::vector<std::string>> lines;
    const Row* before = nullptr;
    for (const Row& row : rows_) {
        if (before == nullptr || before->family != row.family) {
            if (before != nullptr) lines.emplace_back();
            auto& head = lines.emplace_back(std::vector{std::string(to_string(row.family))});
            for (const auto& [type, name] : EnumTable<DataType>::names) head.emplace_back(name);
        }
        auto& cells = lines.emplace_back(std::vector{row.arch.str()});
        for (const Cell& cell : row.cells) cells.push_back(letters(cell));
        before = &row;
    }
    return fmt::format("{}\n{}", text_table(lines), legend);
}

Json SupportTable::to_json() const {
    auto list = Json::array();
    for (const Row& row : rows_)
        for (const auto& [type, name] : EnumTable<DataType>::names) {
            const Cell& cell = row.cells[static_cast<std::size_t>(type)];
            list.push_back({{"family", to_string(row.family)},
                            {"arch", row.arch.view()},
                            {"data_type", name},
                            {"kernels", cell.kernels},
                            {"host", cell.executed[0]},
                            {"emulated", cell.executed[1]},
                            {"gpu", cell.executed[2]}});
        }
    return list;
}

} // namespace fmha::cli
