#pragma once

#include "kernels/catalog/tables/tables.hpp"

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fmha::catalog::tables {

/// Reads the table files of one folder (`tables/ck/`): group `gfx950` is `tables/ck/gfx950.json`. A family
/// may name a `base` group, whose rows come first, and a table whose tiles it imports. Errors are InputError
/// with file, JSON path and value.
class Reader {
  public:
    /// `rules`: those that tables may name; they must outlive the tables.
    Reader(const arch::ArchSet& archs, std::string folder, std::span<const Rule> rules);

    ForwardTables forward(const std::string& group, KernelFamily family) const;
    BackwardTables backward(const std::string& group) const;

  private:
    const Rule* rule_of(const Json& id, const std::string& where) const;
    void read_rules(const Json& part, const std::string& where, std::vector<const Rule*>& rules) const;
    arch::Part family_part(const std::string& group, std::string_view family) const;
    /// The group and its bases, deepest base first.
    std::vector<std::string> chain(const std::string& group, std::string_view family) const;
    /// The reader of the table that a part at `where` imports tiles from, and its group.
    std::pair<Reader, std::string> imported(const Json& path, const std::string& where) const;

    const arch::ArchSet& archs_;
    std::string folder_;
    std::span<const Rule> rules_;
    std::vector<std::string> imports_; ///< the tables that led here
};

} // namespace fmha::catalog::tables
