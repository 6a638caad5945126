#pragma once

#include "kernels/catalog/catalog.hpp"

#include <array>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>

namespace fmha::cli {

enum class KernelFormat : std::uint8_t { names, names_json, records_json };

/// Writes kernels as they are enumerated, in large pieces.
class KernelWriter {
  public:
    KernelWriter(std::ostream& out, catalog::Naming naming, KernelFormat format);
    void add(const KernelConfig& config);
    /// Completes the text; call once, after the last kernel.
    void finish();

  private:
    void flush_if(bool full);

    std::ostream& out_;
    catalog::Naming naming_;
    KernelFormat format_;
    std::string text_;
    bool first_ = true;
};

/// Counts kernels by family and data type, in one table or one for each architecture.
class KernelCounter {
  public:
    /// One table with this title; without a title, one for each architecture that kernels name.
    explicit KernelCounter(std::string title) : title_(std::move(title)) {
        if (!title_.empty()) counts_ = &tables_[title_];
    }
    KernelCounter(const KernelCounter&) = delete;
    KernelCounter& operator=(const KernelCounter&) = delete;
    KernelCounter(KernelCounter&&) = delete;
    KernelCounter& operator=(KernelCounter&&) = delete;
    ~KernelCounter() = default;

    void add(const KernelConfig& config) {
        if (title_.empty() && !(config.arch == arch_)) select(config.arch);
        ++(*counts_)[static_cast<std::size_t>(config.signature.family)]
                    [static_cast<std::size_t>(config.signature.data_type)];
    }
    std::int64_t total() const;
    /// Families × data types, empty rows and columns left out.
    std::string to_text() const;
    std::string to_json() const;

  private:
    using Counts = std::array<std::array<std::int64_t, EnumTable<DataType>::names.size()>,
                              EnumTable<KernelFamily>::names.size()>;
    void select(const ArchName& arch);

    std::string title_;
    std::map<std::string, Counts> tables_;
    ArchName arch_;            ///< of the kernel before, which mostly is that of the next
    Counts* counts_ = nullptr; ///< the table that is being filled, inside tables_
};

} // namespace fmha::cli
