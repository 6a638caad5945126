#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace fmha::store {

enum class Access : std::uint8_t {
    read,  ///< a file that is there
    write, ///< created, with its folders, when it is not there
};

class Database;

/// One prepared statement. Values are bound in the order of its question marks. NaN, which SQLite lacks, and a value that is absent
/// are NULL there.
class Statement {
  public:
    /// Begins anew with these values.
    template <class... Values>
    Statement& with(const Values&... values) {
        restart();
        int place = 0;
        (bind(++place, values), ...);
        return *this;
    }
    /// The next row; false at the end. Throws InputError with the reason.
    bool step();
    /// To the end, where no row is expected.
    void run();

    std::int64_t integer(int column) const;
    double real(int column) const; ///< NaN for NULL
    std::string text(int column) const;
    bool null(int column) const;

  private:
    friend class Database;
    struct Finalize {
        void operator()(sqlite3_stmt* statement) const;
    };
    Statement(const Database& database, sqlite3_stmt* statement)
        : database_(&database), statement_(statement) {}
    void restart();
    template <std::integral T>
    void bind(int place, T value) {
        bind_integer(place, static_cast<std::int64_t>(value));
    }
    template <std::floating_point T>
    void bind(int place, T value) {
        bind_real(place, static_cast<double>(value));
    }
    template <class T>
    void bind(int place, const std::optional<T>& value) {
        if (value) bind(place, *value);
    }
    void bind(int place, std::string_view value);
    void bind_integer(int place, std::int64_t value);
    void bind_real(int place, double value);

    const Database* database_;
    std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

/// A connection to one SQLite file. Every failure is an InputError: the file and the reason, one sentence. A process that is
/// forked while a connection is open must neither use nor close it.
class Database {
  public:
    /// `patience` is how long it waits for other processes that write.
    Database(std::filesystem::path file, Access access, std::chrono::milliseconds patience);

    Statement prepare(std::string_view sql) const;
    /// One or several statements without rows.
    void run(const std::string& sql) const;
    /// The first value of the first row; 0 without one.
    std::int64_t number(std::string_view sql) const;
    /// Whether nothing is defined in it, as in a file of zero bytes.
    bool empty() const { return number("SELECT count(*) FROM sqlite_master") == 0; }
    std::int64_t last_row() const;
    const std::filesystem::path& file() const { return file_; }
    /// Throws the InputError of the last call, which gave `code`.
    [[noreturn]] void fail(int code) const;

  private:
    void open(const std::string& uri, int flags);
    void open_for_reading();
    void choose_journal() const;
    struct Close {
        void operator()(sqlite3* db) const;
    };
    std::filesystem::path file_;
    std::chrono::milliseconds patience_;
    std::unique_ptr<sqlite3, Close> db_;
};

/// Everything until `commit`, or nothing. It takes the file's lock for writing at once, so that two writers queue up.
class Transaction {
  public:
    explicit Transaction(const Database& database);
    ~Transaction();
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    void commit();

  private:
    const Database& database_;
    bool open_ = true;
};

} // namespace fmha::store
