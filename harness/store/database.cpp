#include "harness/store/database.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>
#include <unistd.h>

namespace fmha::store {
namespace {

namespace fs = std::filesystem;

constexpr int primary = 0xff; // the rest of an extended code says more than a user can act on

std::string reason_of(int code, sqlite3* db, std::chrono::milliseconds patience) {
    switch (code & primary) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return fmt::format("is in use by another process, which has not let go of it for {:.3g} s",
                           std::chrono::duration<double>(patience).count());
    case SQLITE_FULL:
        return "cannot be written: the disk is full";
    case SQLITE_READONLY:
        return "cannot be written: the file or its folder is read-only";
    case SQLITE_CORRUPT:
        return "is damaged; `sqlite3 FILE .recover` saves the rows that it can";
    case SQLITE_NOTADB:
        return "is no store of fmha: it is no SQLite file";
    case SQLITE_CANTOPEN: {
        const int cause = db == nullptr ? 0 : sqlite3_system_errno(db);
        return fmt::format("cannot be opened: {}", cause == 0 ? sqlite3_errstr(code) : std::strerror(cause));
    }
    case SQLITE_IOERR: {
        const int cause = db == nullptr ? 0 : sqlite3_system_errno(db);
        return fmt::format("cannot be read or written: {}",
                           cause == 0 ? sqlite3_errstr(code) : std::strerror(cause));
    }
    default:
        return fmt::format("SQLite says: {}", db == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(db));
    }
}

/// A path as a URI of SQLite, which takes a plain name that begins with "file:" for one, too.
std::string uri_of(const fs::path& file, std::string_view query) {
    std::string uri = "file:";
    for (const char c : fs::absolute(file).string()) {
        if (c == '%' || c == '?' || c == '#')
            uri += fmt::format("%{:02x}", static_cast<unsigned char>(c));
        else
            uri += c;
    }
    return uri + std::string(query);
}

} // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
    sqlite3_finalize(statement);
}

void Statement::restart() {
    sqlite3_reset(statement_.get());
    sqlite3_clear_bindings(statement_.get());
}

bool Statement::step() {
    const int code = sqlite3_step(statement_.get());
    if (code == SQLITE_ROW) return true;
    if (code != SQLITE_DONE) {
        // A failed statement keeps its locks until it is reset.
        sqlite3_reset(statement_.get());
        database_->fail(code);
    }
    sqlite3_reset(statement_.get());
    return false;
}

void Statement::run() {
    while (step()) {
    }
}

std::int64_t Statement::integer(int column) const {
    return sqlite3_column_int64(statement_.get(), column);
}

double Statement::real(int column) const {
    return null(column) ? std::numeric_limits<double>::quiet_NaN()
                        : sqlite3_column_double(statement_.get(), column);
}

std::string Statement::text(int column) const {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
    if (text == nullptr) return {};
    return {text, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

bool Statement::null(int column) const {
    return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

void Statement::bind(int place, std::string_view value) {
    const char* text = value.data() == nullptr ? "" : value.data();
    const int code =
        sqlite3_bind_text64(statement_.get(), place, text, value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
    if (code != SQLITE_OK) database_->fail(code);
}

void Statement::bind_integer(int place, std::int64_t value) {
    if (const int code = sqlite3_bind_int64(statement_.get(), place, value); code != SQLITE_OK)
        database_->fail(code);
}

void Statement::bind_real(int place, double value) {
    if (const int code = sqlite3_bind_double(statement_.get(), place, value); code != SQLITE_OK)
        database_->fail(code);
}

void Database::Close::operator()(sqlite3* db) const {
    sqlite3_close(db);
}

Database::Database(fs::path file, Access access, std::chrono::milliseconds patience)
    : file_(std::move(file)), patience_(patience) {
    std::error_code ignored;
    if (const auto status = fs::status(file_, ignored); fs::exists(status) && !fs::is_regular_file(status))
        throw InputError(fmt::format("{}: a store must be a regular file", file_.string()));
    if (access == Access::read) {
        if (!fs::exists(file_, ignored))
            throw InputError(fmt::format("{}: there is no such file", file_.string()));
        open_for_reading();
        return;
    }
    if (file_.has_parent_path()) fs::create_directories(file_.parent_path());
    // SQLite asks for a new file to be read after it could not be written, and then says that it does not exist.
    const fs::path folder = file_.has_parent_path() ? file_.parent_path() : fs::path(".");
    if (!fs::exists(file_, ignored) && ::access(folder.c_str(), W_OK) != 0)
        throw InputError(fmt::format("{}: cannot be opened: {}", file_.string(), std::strerror(errno)));
    open(uri_of(file_, ""), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    // A first look, so that a file of another kind is refused before anything is changed.
    number("SELECT count(*) FROM sqlite_master");
    choose_journal();
}

void Database::open(const std::string& uri, int flags) {
    sqlite3* db = nullptr;
    const int code =
        sqlite3_open_v2(uri.c_str(), &db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI, nullptr);
    db_.reset(db);
    if (code != SQLITE_OK) fail(code);
    sqlite3_busy_timeout(db, static_cast<int>(patience_.count()));
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
}

void Database::open_for_reading() {
    open(uri_of(file_, ""), SQLITE_OPEN_READONLY);
    constexpr const char* first_look = "SELECT count(*) FROM sqlite_master";
    const int code = sqlite3_exec(db_.get(), first_look, nullptr, nullptr, nullptr);
    if (code == SQLITE_OK) return;
    // Reading beside a writer takes a file of shared memory beside the store. In a folder where none can be made there is no
    // writer either, and without the writer's log the file is whole as it is. A writer without a log holds the file while it writes.
    const std::string log = file_.string() + "-wal";
    const bool has_log = fs::exists(log);
    if (has_log && (code & primary) == SQLITE_CANTOPEN)
        throw InputError(fmt::format(
            "{0}: a killed run left {1}, which is read in a folder that can be written only; copy "
            "{0} and {1} to one",
            file_.string(), log));
    if (has_log || (code & primary) == SQLITE_BUSY) fail(code);
    open(uri_of(file_, "?immutable=1"), SQLITE_OPEN_READONLY);
    number(first_look);
}

/// With a log, readers and a writer do not stop one another and a commit waits for no disk; a file system without shared memory keeps
/// SQLite's other journal, which is as safe and slower.
void Database::choose_journal() const {
    const auto end = std::chrono::steady_clock::now() + patience_;
    while (true) {
        const int code = sqlite3_exec(db_.get(), "PRAGMA journal_mode = wal", nullptr, nullptr, nullptr);
        if (code == SQLITE_OK) break;
        // SQLite does not wait by itself here.
        if (code != SQLITE_BUSY || std::chrono::steady_clock::now() >= end) fail(code);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    run("PRAGMA synchronous = normal; PRAGMA foreign_keys = on");
}

void Database::fail(int code) const {
    throw InputError(fmt::format("{}: {}", file_.string(), reason_of(code, db_.get(), patience_)));
}

Statement Database::prepare(std::string_view sql) const {
    sqlite3_stmt* statement = nullptr;
    const int code =
        sqlite3_prepare_v2(db_.get(), sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
    if (code != SQLITE_OK) fail(code);
    return {*this, statement};
}

void Database::run(const std::string& sql) const {
    if (const int code = sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr); code != SQLITE_OK)
        fail(code);
}

std::int64_t Database::number(std::string_view sql) const {
    Statement statement = prepare(sql);
    return statement.step() ? statement.integer(0) : 0;
}

std::int64_t Database::last_row() const {
    return sqlite3_last_insert_rowid(db_.get());
}

Transaction::Transaction(const Database& database) : database_(database) {
    database.run("BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
    if (!open_) return;
    try {
        database_.run("ROLLBACK");
    } catch (const InputError&) {
        // SQLite has rolled back by itself, after a full disk for example.
    }
}

void Transaction::commit() {
    database_.run("COMMIT");
    open_ = false;
}

} // namespace fmha::store
