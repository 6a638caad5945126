#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace fmha::generator {

/// The files of one compiled unit.
struct CompiledUnit {
    std::filesystem::path object, log;
    std::int64_t compile_ms = 0;
};

/// Code objects by content, shared by all builds of a user. An entry is a folder that appears whole or not at all, so
/// that any number of processes may read and write at once; the folder as a whole may be removed at any time.
class KernelCache {
  public:
    explicit KernelCache(std::filesystem::path folder);

    /// FMHA_CACHE_DIR, else fmha/kernels in XDG_CACHE_HOME or ~/.cache. Throws InputError when none is set.
    static std::filesystem::path usual_folder();

    /// The reason, a sentence, for which the content of the folder is not believed: it, or a folder above it, is another user's or others may write
    /// there, so that anybody's code could lie there under a right name. nullopt when it is believed, or not there yet. The
    /// administrator is believed, and folders in which everybody may write but remove only their own files (/tmp) are passed.
    std::optional<std::string> why_not_believed() const;

    /// Puts the entry's files where `to` says, replacing older ones, and says how long they took to make. Nothing
    /// when there is no such entry; one whose object is damaged, or which others may have written, is removed.
    std::optional<std::int64_t> fetch(const std::string& key, const CompiledUnit& to) const;

    /// Keeps the files of a unit, which nobody else may write from then on. An entry that is there already stays. Throws InputError
    /// when it cannot be written.
    void store(const std::string& key, const CompiledUnit& from) const;

  private:
    std::filesystem::path place(const std::string& key) const;

    std::filesystem::path folder_;
};

} // namespace fmha::generator
