#include "harness/cli/kernel_output.hpp"

#include "dispatcher/types/field_json.hpp"
#include "dispatcher/types/json.hpp"
#include "dispatcher/types/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <ostream>

namespace fmha::cli {
namespace {

constexpr std::size_t piece = 1U << 20U;

std::int64_t sum(const auto& row) {
    return std::accumulate(row.begin(), row.end(), std::int64_t{0});
}

} // namespace

KernelWriter::KernelWriter(std::ostream& out, catalog::Naming naming, KernelFormat format)
    : out_(out), naming_(naming), format_(format) {
    text_.reserve(piece + 4096);
    if (format_ != KernelFormat::names) text_ = "[";
}

void KernelWriter::add(const KernelConfig& config) {
    if (format_ == KernelFormat::names) {
        catalog::append_name(naming_, config, text_);
        text_ += '\n';
        flush_if(text_.size() >= piece);
        return;
    }
    text_ += first_ ? "\n" : ",\n";
    first_ = false;
    if (format_ == KernelFormat::names_json) {
        text_ += '"';
        catalog::append_name(naming_, config, text_);
        text_ += '"';
    } else {
        Json record = {{"name", catalog::name_of(naming_, config)}};
        record.update(fields_to_json(config));
        text_ += record.dump();
    }
    flush_if(text_.size() >= piece);
}

void KernelWriter::finish() {
    if (format_ != KernelFormat::names) text_ += first_ ? "]\n" : "\n]\n";
    flush_if(true);
    out_.flush();
}

void KernelWriter::flush_if(bool full) {
    if (!full) return;
    out_.write(text_.data(), static_cast<std::streamsize>(text_.size()));
    text_.clear();
}

void KernelCounter::select(const ArchName& arch) {
    arch_ = arch;
    counts_ = &tables_[arch.str()];
}

std::int64_t KernelCounter::total() const {
    std::int64_t all = 0;
    for (const auto& [title, counts] : tables_)
        for (const auto& row : counts) all += sum(row);
    return all;
}

std::string KernelCounter::to_text() const {
    std::string text;
    for (const auto& [title, counts] : tables_) {
        std::array<std::int64_t, EnumTable<DataType>::names.size()> columns{};
        for (const auto& row : counts)
            for (std::size_t i = 0; i < row.size(); ++i) columns[i] += row[i];
        std::vector<std::vector<std::string>> lines{{title}};
        for (const auto& [type, name] : EnumTable<DataType>::names)
            if (columns[static_cast<std::size_t>(type)] > 0) lines.front().emplace_back(name);
        lines.front().emplace_back("total");
        const auto line = [&](std::string_view name, const auto& row) {
            auto& cells = lines.emplace_back(std::vector{std::string(name)});
            for (std::size_t i = 0; i < row.size(); ++i)
                if (columns[i] > 0) cells.push_back(fmt::to_string(row[i]));
            cells.push_back(fmt::to_string(sum(row)));
        };
        for (const auto& [family, name] : EnumTable<KernelFamily>::names)
            if (const auto& row = counts[static_cast<std::size_t>(family)]; sum(row) > 0) line(name, row);
        line("total", columns);
        text += text_table(lines) + '\n';
    }
    return text + fmt::format("{} kernels\n", total());
}

std::string KernelCounter::to_json() const {
    auto tables = Json::object();
    for (const auto& [title, counts] : tables_) {
        auto& families = tables[title] = Json::object();
        for (const auto& [family, name] : EnumTable<KernelFamily>::names) {
            const auto& row = counts[static_cast<std::size_t>(family)];
            if (sum(row) == 0) continue;
            auto& types = families[std::string(name)] = Json::object();
            for (const auto& [type, type_name] : EnumTable<DataType>::names)
                if (const auto count = row[static_cast<std::size_t>(type)]; count > 0)
                    types[std::string(type_name)] = count;
        }
    }
    const Json document = {{"total", total()}, {"tables", std::move(tables)}};
    return document.dump(2) + "\n";
}

} // namespace fmha::cli
