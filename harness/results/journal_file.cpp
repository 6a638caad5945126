#include "harness/results/journal_file.hpp"

#include "dispatcher/types/error.hpp"
#include "harness/results/merge.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fmha::harness {
namespace {
using Clock = std::chrono::steady_clock;

/// The member by which a journal is recognised; its value is the version of the format.
constexpr const char* schema_key = "journal";
/// The last member: the id of the run that began the file. It is no part of the identity.
constexpr const char* run_key = "run";
/// How the command said which cases it takes; the cases themselves decide.
constexpr const char* selection_key = "selection";

/// The members that must be equal.
Json deciding(const Json& header) {
    Json rest = Json::object();
    for (const auto& [key, value] : header.items())
        if (key != run_key && key != selection_key && key != objections_key) rest[key] = value;
    return rest;
}

/// Reads the lines behind the header. Returns how many of the bytes are whole.
std::size_t read_lines(std::string_view text, const std::filesystem::path& file, const JournalLine& on_line) {
    std::size_t at = 0;
    for (std::size_t number = 2; at < text.size(); ++number) {
        const auto end = text.find('\n', at);
        bool whole = false;
        try {
            whole = end != std::string_view::npos && on_line(text.substr(at, end - at));
        } catch (const InputError& error) {
            throw InputError(fmt::format("{}: line {}: {}; remove the file to begin anew", file.string(),
                                         number, error.what()));
        }
        // A kill or a loss of power leaves a part of the next line behind the last whole one.
        if (!whole && (end == std::string_view::npos || end + 1 == text.size())) break;
        if (!whole)
            throw InputError(
                fmt::format("{}: line {} is damaged; remove the file to begin anew", file.string(), number));
        at = end + 1;
    }
    return at;
}

} // namespace

JournalFile::JournalFile(std::filesystem::path file, std::string command, std::string schema,
                         const Json& identity, std::string run_id, const JournalLine& on_line)
    : file_(std::move(file)), command_(std::move(command)), run_id_(std::move(run_id)) {
    Json header{{schema_key, std::move(schema)}};
    header.update(identity);
    descriptor_ = open(file_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (descriptor_ < 0)
        throw InputError(fmt::format("{}: cannot be written: {}", file_.string(), std::strerror(errno)));
    try {
        struct stat status {};
        if (fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode))
            throw InputError(fmt::format("{}: a journal must be a regular file", file_.string()));
        lock();
        const std::string text = content();
        const std::size_t whole = read(text, header, on_line);
        if (whole < text.size() && ftruncate(descriptor_, static_cast<off_t>(whole)) != 0)
            throw InputError(fmt::format("{}: cannot be written: {}", file_.string(), std::strerror(errno)));
        if (whole == 0) begin(header);
    } catch (...) {
        close(descriptor_);
        throw;
    }
}

JournalFile::~JournalFile() {
    synchronise();
    close(descriptor_);
}

void JournalFile::begin(const Json& header) {
    Json line = header;
    line[run_key] = run_id_;
    std::string problem = write_line(line.dump() + '\n');
    if (problem.empty()) problem = flush();
    if (!problem.empty()) throw InputError(fmt::format("{}: cannot be written: {}", file_.string(), problem));
    synchronised_ = Clock::now();
    // The name of a new file is its folder's. Not every file system synchronises folders, so it is only asked to.
    const auto folder = std::filesystem::absolute(file_).parent_path();
    const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return;
    fsync(descriptor);
    close(descriptor);
}

void JournalFile::lock() const {
    // The kind of lock that child processes do not inherit: a worker that outlives a killed run for a
    // moment must not keep the next one out. It ends when this process closes any descriptor of the file.
    struct flock wanted {};
    wanted.l_type = F_WRLCK;
    wanted.l_whence = SEEK_SET;
    if (fcntl(descriptor_, F_SETLK, &wanted) == 0) return;
    if (errno != EACCES && errno != EAGAIN)
        throw InputError(fmt::format("{}: cannot be locked: {}", file_.string(), std::strerror(errno)));
    struct flock holder = wanted;
    // A process of another container or machine has no number here.
    const bool known =
        fcntl(descriptor_, F_GETLK, &holder) == 0 && holder.l_type != F_UNLCK && holder.l_pid > 0;
    throw InputError(fmt::format("{}: is in use by another run{}", file_.string(),
                                 known ? fmt::format(", process {}", holder.l_pid) : std::string()));
}

std::string JournalFile::content() const {
    std::string text;
    std::array<char, 1 << 16> block{};
    while (true) {
        const ssize_t n = pread(descriptor_, block.data(), block.size(), static_cast<off_t>(text.size()));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            throw InputError(fmt::format("{}: cannot be read: {}", file_.string(), std::strerror(errno)));
        if (n == 0) return text;
        text.append(block.data(), static_cast<std::size_t>(n));
    }
}

std::size_t JournalFile::read(const std::string& text, const Json& header, const JournalLine& on_line) {
    const auto end_of_header = text.find('\n');
    if (end_of_header == std::string::npos) {
        // A run that was killed while it began the file left a part of the line, or nothing.
        std::string line = header.dump();
        line.back() = ',';
        if (line.starts_with(text) || text.starts_with(line)) return 0;
        throw InputError(fmt::format("{}: is not a journal of {}", file_.string(), command_));
    }
    const Json there = Json::try_parse(text.substr(0, end_of_header)).value_or(nullptr);
    if (!there.is_object() || !there.contains(schema_key))
        throw InputError(fmt::format("{}: is not a journal of {}", file_.string(), command_));
    if (there.at(schema_key) != header.at(schema_key))
        throw InputError(fmt::format("{}: is another kind of journal, {}; that of {} is {}", file_.string(),
                                     there.at(schema_key).dump(), command_, header.at(schema_key).dump()));
    if (deciding(there) != deciding(header))
        throw InputError(
            fmt::format("{}: belongs to another run: {}; name another file, or remove it to begin anew",
                        file_.string(), identity_differences(deciding(there), deciding(header))));
    run_id_ = there.value(run_key, run_id_);
    return end_of_header + 1 + read_lines(std::string_view(text).substr(end_of_header + 1), file_, on_line);
}

std::string JournalFile::write_line(const std::string& line) const {
    const off_t before = lseek(descriptor_, 0, SEEK_END);
    std::size_t done = 0;
    while (done < line.size()) {
        const ssize_t n = write(descriptor_, line.data() + done, line.size() - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            std::string reason = std::strerror(errno);
            if (ftruncate(descriptor_, before) != 0) reason += ", and its last line is incomplete";
            return reason;
        }
        done += static_cast<std::size_t>(n);
    }
    return {};
}

std::string JournalFile::flush() const {
    while (fdatasync(descriptor_) != 0)
        if (errno != EINTR) return std::strerror(errno);
    return {};
}

void JournalFile::append(const std::string& name, const Json& line) {
    if (!failure_.empty()) return;
    const std::string problem = write_line(line.dump() + '\n');
    if (!problem.empty()) {
        failure_ = fmt::format("{}: cannot be written from {} on: {}", file_.string(), name, problem);
        return;
    }
    dirty_ = true;
    keep_durable();
}

void JournalFile::synchronise() {
    if (!dirty_) return;
    // The system does not repeat a write that failed, so the journal does not either.
    dirty_ = false;
    synchronised_ = Clock::now();
    if (const std::string problem = flush(); !problem.empty() && failure_.empty())
        failure_ =
            fmt::format("{}: outcomes may be missing from it, it cannot be synchronised with the disk: {}",
                        file_.string(), problem);
}

void JournalFile::keep_durable() {
    if (Clock::now() - synchronised_ >= std::chrono::seconds(1)) synchronise();
}

std::optional<Json> read_journal_lines(std::string_view text, const std::filesystem::path& file,
                                       std::string_view schema, const JournalLine& on_line) {
    const auto end_of_header = text.find('\n');
    const Json header = Json::try_parse(text.substr(0, end_of_header)).value_or(nullptr);
    if (end_of_header == std::string_view::npos || !header.is_object() || !header.contains(schema_key) ||
        header.at(schema_key) != Json(schema))
        return std::nullopt;
    Json identity = Json::object();
    for (const auto& [key, value] : header.items())
        if (key != schema_key) identity[key] = value;
    read_lines(text.substr(end_of_header + 1), file, on_line);
    return identity;
}

} // namespace fmha::harness
