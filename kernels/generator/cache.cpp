#include "kernels/generator/cache.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/system/sha256.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/json.hpp"
#include "dispatcher/types/strict_json.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <sys/stat.h>
#include <unistd.h>

namespace fmha::generator {

namespace fs = std::filesystem;

namespace {

/// The same file under another name where the file system allows it, else a copy. Replaces `to`.
void link_or_copy(const fs::path& from, const fs::path& to) {
    const fs::path draft = to.string() + fmt::format(".{}.draft", getpid());
    std::error_code error;
    fs::remove(draft, error);
    fs::create_hard_link(from, draft, error);
    if (error) fs::copy_file(from, draft);
    fs::rename(draft, to);
    // A rename between two names of one file does nothing and leaves both.
    fs::remove(draft, error);
}

constexpr fs::perms of_others = fs::perms::group_write | fs::perms::others_write;

enum class Sticky : std::uint8_t { protects, counts_for_nothing };

/// A clause about the permission that lets somebody else write to a file or into a folder; nullopt without one, or when it is not there.
/// In a sticky folder others can add files and remove none but their own.
std::optional<std::string> open_to_others(const fs::path& path, Sticky sticky) {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0) return std::nullopt;
    if (status.st_uid != geteuid() && status.st_uid != 0)
        return fmt::format("belongs to user {}", status.st_uid);
    if (sticky == Sticky::protects && (status.st_mode & S_ISVTX) != 0) return std::nullopt;
    if ((status.st_mode & S_IWOTH) != 0) return "can be written by everybody";
    if ((status.st_mode & S_IWGRP) != 0) return fmt::format("can be written by group {}", status.st_gid);
    return std::nullopt;
}

/// Creates a folder and those above it, for this user alone to write.
void create_own_folders(const fs::path& folder) {
    if (folder.empty() || fs::exists(folder)) return;
    create_own_folders(folder.parent_path());
    if (fs::create_directory(folder)) fs::permissions(folder, of_others, fs::perm_options::remove);
}

/// A new folder inside another one, which is gone at the end unless it has another name by then.
class Draft {
  public:
    explicit Draft(const fs::path& folder) {
        std::string name = (folder / "draft-XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr) throw InputError(fmt::format("{}: cannot be created", name));
        path_ = name;
    }
    Draft(const Draft&) = delete;
    Draft& operator=(const Draft&) = delete;
    ~Draft() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    const fs::path& path() const { return path_; }

  private:
    fs::path path_;
};

} // namespace

KernelCache::KernelCache(fs::path folder) : folder_(std::move(folder)) {}

fs::path KernelCache::usual_folder() {
    const auto set = [](const char* name) -> const char* {
        const char* value = std::getenv(name);
        return value == nullptr || *value == '\0' ? nullptr : value;
    };
    if (const char* own = set("FMHA_CACHE_DIR")) return own;
    if (const char* shared = set("XDG_CACHE_HOME")) return fs::path(shared) / "fmha/kernels";
    if (const char* home = set("HOME")) return fs::path(home) / ".cache/fmha/kernels";
    throw InputError(
        "no folder for the cache of kernels: neither FMHA_CACHE_DIR nor HOME is set; give --cache DIR or "
        "--no-cache");
}

fs::path KernelCache::place(const std::string& key) const {
    return folder_ / key.substr(0, 2) / key;
}

std::optional<std::string> KernelCache::why_not_believed() const {
    std::error_code error;
    fs::path folder = fs::weakly_canonical(fs::absolute(folder_), error);
    if (error) folder = folder_;
    for (fs::path at = folder;; at = at.parent_path()) {
        const bool itself = at == folder;
        if (const auto why = open_to_others(at, itself ? Sticky::counts_for_nothing : Sticky::protects))
            return fmt::format("cache {}: {}{}, so that the code in it may be anybody's", folder_.string(),
                               itself ? "" : at.string() + " ", *why);
        if (!at.has_relative_path()) return std::nullopt;
    }
}

std::optional<std::int64_t> KernelCache::fetch(const std::string& key, const CompiledUnit& to) const {
    const fs::path entry = place(key);
    std::error_code ignored;
    if (!fs::exists(entry / "entry.json", ignored)) return std::nullopt;
    try {
        for (const fs::path& path :
             {entry.parent_path(), entry, entry / "entry.json", entry / "object", entry / "log"})
            if (open_to_others(path, Sticky::counts_for_nothing)) throw InputError("not this user's alone");
        const auto about = parse_strict_json(system::read_file(entry / "entry.json"), entry.string());
        if (about.at("sha256") != system::sha256(system::read_file(entry / "object")))
            throw InputError("damaged");
        const auto took = about.at("compile_ms").get<std::int64_t>();
        link_or_copy(entry / "log", to.log);
        link_or_copy(entry / "object", to.object);
        return took;
    } catch (const InputError&) {
        fs::remove_all(entry, ignored);
    } catch (const fs::filesystem_error&) {
        // Somebody empties the cache while it is read, or the output folder is full: compile, and be told by that.
    }
    return std::nullopt;
}

void KernelCache::store(const std::string& key, const CompiledUnit& from) const {
    const fs::path entry = place(key);
    try {
        if (fs::exists(entry)) return;
        create_own_folders(entry.parent_path());
        const Draft draft(folder_);
        // mkdtemp leaves out everybody else, who may share this cache.
        fs::permissions(draft.path(),
                        fs::perms::group_read | fs::perms::group_exec | fs::perms::others_read |
                            fs::perms::others_exec,
                        fs::perm_options::add);
        link_or_copy(from.object, draft.path() / "object");
        link_or_copy(from.log, draft.path() / "log");
        const Json about{{"sha256", system::sha256(system::read_file(from.object))},
                         {"compile_ms", from.compile_ms}};
        system::write_file(draft.path() / "entry.json", about.dump() + "\n");
        for (const char* name : {"object", "log", "entry.json"})
            fs::permissions(draft.path() / name, of_others, fs::perm_options::remove);
        // Where that fails another process was quicker, and its entry is the same.
        std::error_code there_already;
        fs::rename(draft.path(), entry, there_already);
    } catch (const fs::filesystem_error& error) {
        throw InputError(fmt::format("cache {}: {}", folder_.string(), error.code().message()));
    }
}

} // namespace fmha::generator
