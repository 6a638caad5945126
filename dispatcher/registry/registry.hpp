#pragma once

#include "dispatcher/registry/segment.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fmha {

/// A consistent view of a registry at one moment. Cheap to copy; unaffected by later registrations.
class Snapshot {
  public:
    Snapshot() = default;
    explicit Snapshot(std::vector<std::shared_ptr<const Segment>> segments)
        : segments_(std::move(segments)) {}

    std::span<const std::shared_ptr<const Segment>> segments() const { return segments_; }
    std::size_t size() const;
    const KernelEntry* find(const KernelConfig& config) const;

  private:
    std::vector<std::shared_ptr<const Segment>> segments_;
};

/// Names a configuration that has no instance with a name of its own.
using KernelNamer = std::function<std::string(const KernelConfig&)>;

/// A thread-safe set of kernels (dispatcher-api section 7). Identity is the whole configuration. Registering
/// the same configuration again: the higher priority stays; at equal priority the same name changes nothing
/// and another name throws KeyConflict. An entry without an instance has no name of its own, so an instance
/// joins it at equal priority.
///
/// Writers exclude each other; readers take a snapshot, which copies one pointer.
class Registry {
  public:
    explicit Registry(std::string name = "default", KernelNamer namer = {});
    ~Registry() = default;
    Registry(const Registry&) = delete;
    Registry& operator=(const Registry&) = delete;

    /// Throws InputError for a null instance, KeyConflict, DeclarationError (unknown constraint).
    void add(std::shared_ptr<const KernelInstance> instance, Priority priority = Priority::normal);
    /// A configuration that is known but not built.
    void add(const KernelConfig& config, Priority priority = Priority::normal);
    /// A whole catalogue at once; all of it or, when this throws, nothing.
    void add(std::vector<KernelEntry> entries);
    void add(std::span<const KernelConfig> configs, Priority priority = Priority::normal);
    /// Everything in `other`, at `priority`, under the rule of `add`. Merging with itself changes nothing.
    void merge_from(const Registry& other, Priority priority);
    /// They return how many entries they dropped.
    std::size_t filter(const std::function<bool(const KernelEntry&)>& keep);
    std::size_t filter_by_arch(std::string_view arch);
    /// Keeps what the working list has under this profile, a name or a number (dispatcher-api section 11). Throws InputError for one
    /// that is not known.
    std::size_t filter_by_profile(std::string_view profile);
    void clear();

    std::shared_ptr<const Snapshot> snapshot() const;
    std::size_t size() const { return snapshot()->size(); }
    bool empty() const { return size() == 0; }
    std::string name() const;
    void set_name(std::string name);

    /// By identifier (`fmha::identifier` of the configuration); nothing when unknown or unreadable.
    std::optional<KernelEntry> lookup(std::string_view identifier) const;
    /// Priority descending, selection rank, head dimensions, tile_m0, name.
    std::vector<KernelEntry> get_all() const;
    /// The instance's name, else that of the namer, else the identifier.
    std::string name_of(const KernelEntry& entry) const;

    /// The whole registry as JSON (shape of section 7 with full signatures), stable in order.
    std::string export_json() const;
    /// The same into a file, through a temporary file beside it and a rename.
    void export_json(const std::filesystem::path& file) const;
    /// From now on every change is exported to `file` (an empty path switches this off); `now` also exports
    /// the present state. The export runs outside the registry's lock.
    void auto_export(std::filesystem::path file, bool now = true);

  private:
    using Segments = std::vector<std::shared_ptr<const Segment>>;

    void add_locked(std::vector<KernelEntry> entries);
    void publish(Segments segments);
    void export_after_change();

    KernelNamer namer_;
    mutable std::mutex writers_; ///< held while the set changes
    mutable std::mutex state_;   ///< held while a pointer or a setting is copied
    std::string name_;
    std::filesystem::path auto_export_;
    std::shared_ptr<const Snapshot> snapshot_ = std::make_shared<const Snapshot>();
    mutable std::mutex exports_; ///< one auto-export at a time, so that the last one wins on disk
};

} // namespace fmha
