#pragma once

#include "dispatcher/types/json.hpp"
#include "dispatcher/types/rule.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The contents of an architecture file, read once and passed by reference; nothing here is global.
namespace fmha::arch {

enum class Vendor : std::uint8_t { amd, nvidia };

/// One matrix instruction: D[m x n] += A[m x k] B[k x n], for the data types in `data_types` (bit per
/// DataType).
struct MatrixInstruction {
    std::int16_t m = 0, n = 0, k = 0;
    std::uint32_t data_types = 0;
};

/// The `hardware` part of an architecture file.
struct Hardware {
    Vendor vendor = Vendor::amd;
    HardwareLimits limits;      ///< types, pipelines, LDS bytes of one workgroup, compute units
    std::int32_t wave_size = 0; ///< lanes
    std::int32_t registers_per_lane =
        0; ///< 32-bit vector registers one lane can address, accumulators included
    std::int32_t max_waves_per_group = 0;
    std::vector<MatrixInstruction> matrix_instructions;
};

/// A table or an object inside a file of the architecture folder, with the place it came from for messages.
struct Part {
    const Json* value = nullptr;
    std::string source; ///< "tables/ck/gfx9.json#" or "gfx950.json#/rule_sets/claim"
};

/// One loaded architecture file.
class ArchTables {
  public:
    ArchTables(std::string file, std::shared_ptr<const Json> document, Hardware hardware);

    const ArchName& name() const { return hardware_.limits.arch; }
    const Hardware& hardware() const { return hardware_; }
    /// File name inside the folder, for messages.
    const std::string& file() const { return file_; }
    bool has_rule_set(std::string_view rule_set) const;
    /// The object `rule_sets.<rule_set>` as it stands in the file (references to tables are plain strings,
    /// see ArchSet::table). Throws InputError when the file has none.
    Part rule_set(std::string_view rule_set) const;

  private:
    std::string file_;
    std::shared_ptr<const Json> document_;
    Hardware hardware_;
};

/// Every architecture file of one folder plus the tables they share (`tables/**.json`). Cheap to copy.
class ArchSet {
  public:
    /// The files that were compiled into the program. Their schema is checked by a test, not here.
    static ArchSet built_in();
    /// Reads `directory/*.json` and `directory/tables/**.json` and validates each against the compiled-in
    /// schema. Throws InputError with file, JSON path and value of the first few violations.
    static ArchSet load(const std::filesystem::path& directory);
    /// The same from texts in memory: pairs of (path inside the folder, content). `validate` = check the
    /// schema.
    struct File {
        std::string_view path;
        std::string_view text;
    };
    static ArchSet parse(std::span<const File> files, bool validate);
    /// The compiled-in files themselves, so that tests and tools can change one entry and parse again.
    static std::span<const File> built_in_files();

    std::span<const ArchTables> all() const;
    const ArchTables* find(std::string_view name) const;
    /// Throws InputError that lists the known architectures.
    const ArchTables& at(std::string_view name) const;
    /// A shared table by its path (`tables/ck/gfx9.json`); throws InputError when there is none.
    Part table(std::string_view path) const;
    /// Every shared table whose path starts with `prefix`, in path order.
    std::vector<Part> tables(std::string_view prefix) const;
    /// The tables that the file of one architecture refers to, rule set by rule set.
    struct RuleSetTable {
        std::string_view rule_set;
        std::string path;
    };
    std::vector<RuleSetTable> tables_named_by(const ArchTables& arch) const;

  private:
    struct Data;
    std::shared_ptr<const Data> data_;
};

} // namespace fmha::arch
