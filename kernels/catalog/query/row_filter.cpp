#include "kernels/catalog/query/row_filter.hpp"

#include "dispatcher/types/error.hpp"
#include "kernels/catalog/query/columns.hpp"
#include "kernels/catalog/query/expression.hpp"
#include "kernels/catalog/query/sql_functions.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <exception>
#include <utility>

namespace fmha::catalog {
namespace {

using Clock = std::chrono::steady_clock;

/// The content of the virtual table at the moment; SQLite reads the records where they are.
struct Batch {
    std::span<const KernelConfig> records;
    RowFilter::NameOf name_of;
    std::string scratch;
    Clock::time_point deadline;
    std::exception_ptr thrown; ///< by a function that SQLite called

    /// Throws the exception that SQLite could not pass on.
    void pass_on() {
        if (thrown) std::rethrow_exception(std::exchange(thrown, nullptr));
    }
};

/// Runs `body` for SQLite, through whose frames, which are C, no exception may pass: it waits in `batch`.
template <class Body>
int for_sqlite(Batch& batch, const Body& body) noexcept {
    try {
        return body();
    } catch (...) {
        batch.thrown = std::current_exception();
        return SQLITE_ERROR;
    }
}

struct CatalogueTable : sqlite3_vtab {
    Batch* batch = nullptr;
};

struct Cursor : sqlite3_vtab_cursor {
    std::size_t row = 0;
};

Batch& batch_of(sqlite3_vtab* table) {
    return *static_cast<CatalogueTable*>(table)->batch;
}

int connect(sqlite3* db, void* batch, int, const char* const*, sqlite3_vtab** out, char**) {
    return for_sqlite(*static_cast<Batch*>(batch), [&] {
        std::string declaration = "CREATE TABLE c(";
        for (const Column& column : columns()) declaration += fmt::format("\"{}\", ", column.name);
        declaration += "name)";
        if (const int rc = sqlite3_declare_vtab(db, declaration.c_str()); rc != SQLITE_OK) return rc;
        auto* table = new CatalogueTable{};
        table->batch = static_cast<Batch*>(batch);
        *out = table;
        return SQLITE_OK;
    });
}

int disconnect(sqlite3_vtab* table) {
    delete static_cast<CatalogueTable*>(table);
    return SQLITE_OK;
}

int best_index(sqlite3_vtab*, sqlite3_index_info*) {
    return SQLITE_OK;
} // always a scan from start to end

int open_cursor(sqlite3_vtab* table, sqlite3_vtab_cursor** out) {
    return for_sqlite(batch_of(table), [&] {
        *out = new Cursor{};
        return SQLITE_OK;
    });
}

int close_cursor(sqlite3_vtab_cursor* cursor) {
    delete static_cast<Cursor*>(cursor);
    return SQLITE_OK;
}

int rewind_cursor(sqlite3_vtab_cursor* cursor, int, const char*, int, sqlite3_value**) {
    static_cast<Cursor*>(cursor)->row = 0;
    return SQLITE_OK;
}

int next_row(sqlite3_vtab_cursor* cursor) {
    ++static_cast<Cursor*>(cursor)->row;
    return SQLITE_OK;
}

int at_end(sqlite3_vtab_cursor* cursor) {
    return static_cast<Cursor*>(cursor)->row >= batch_of(cursor->pVtab).records.size() ? 1 : 0;
}

void put_text(sqlite3_context* context, std::string_view text) {
    sqlite3_result_text(context, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
}

void put_column(sqlite3_context* context, Batch& batch, std::size_t row, int index) {
    const KernelConfig& config = batch.records[row];
    const auto all = columns();
    if (static_cast<std::size_t>(index) >= all.size()) {
        batch.scratch.clear();
        batch.name_of(config, batch.scratch);
        return put_text(context, batch.scratch);
    }
    const Cell cell = all[static_cast<std::size_t>(index)].read(config, batch.scratch);
    if (const auto* number = std::get_if<std::int64_t>(&cell))
        sqlite3_result_int64(context, *number);
    else if (const auto* flag = std::get_if<bool>(&cell))
        sqlite3_result_int(context, *flag ? 1 : 0);
    else
        put_text(context, std::get<std::string_view>(cell));
}

int read_column(sqlite3_vtab_cursor* cursor, sqlite3_context* context, int index) {
    Batch& batch = batch_of(cursor->pVtab);
    return for_sqlite(batch, [&] {
        put_column(context, batch, static_cast<Cursor*>(cursor)->row, index);
        return SQLITE_OK;
    });
}

int read_rowid(sqlite3_vtab_cursor* cursor, sqlite3_int64* id) {
    *id = static_cast<sqlite3_int64>(static_cast<Cursor*>(cursor)->row);
    return SQLITE_OK;
}

constexpr sqlite3_module make_module() {
    sqlite3_module module{}; // no xCreate: the table exists by itself and none can be created
    module.xConnect = connect;
    module.xDisconnect = disconnect;
    module.xBestIndex = best_index;
    module.xOpen = open_cursor;
    module.xClose = close_cursor;
    module.xFilter = rewind_cursor;
    module.xNext = next_row;
    module.xEof = at_end;
    module.xColumn = read_column;
    module.xRowid = read_rowid;
    return module;
}
constexpr sqlite3_module catalogue_module = make_module();

int past_deadline(void* batch) {
    return Clock::now() >= static_cast<Batch*>(batch)->deadline ? 1 : 0;
}

void restrict_connection(sqlite3* db) {
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 64 * 1024);
    sqlite3_limit(db, SQLITE_LIMIT_EXPR_DEPTH, 200);
    sqlite3_limit(db, SQLITE_LIMIT_COMPOUND_SELECT, 2);
    sqlite3_limit(db, SQLITE_LIMIT_VDBE_OP, 100'000);
    sqlite3_limit(db, SQLITE_LIMIT_FUNCTION_ARG, 16);
    sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_limit(db, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 256);
    sqlite3_limit(db, SQLITE_LIMIT_VARIABLE_NUMBER, 0);
    sqlite3_limit(db, SQLITE_LIMIT_TRIGGER_DEPTH, 0);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
}

struct CloseDatabase {
    void operator()(sqlite3* db) const { sqlite3_close(db); }
};
struct FinalizeStatement {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

} // namespace

struct RowFilter::State {
    std::string expression;
    Clock::duration time_left{};
    FilterLimits limits;
    Batch batch;
    std::unique_ptr<sqlite3, CloseDatabase> db;
    std::unique_ptr<sqlite3_stmt, FinalizeStatement> statement; // after db: finalized before it closes

    [[noreturn]] void fail(std::string_view why) const {
        throw InputError(fmt::format("{}: {}", naming_expression(expression), why));
    }
};

RowFilter::RowFilter(std::string_view expression, NameOf name_of, FilterLimits limits)
    : state_(std::make_unique<State>()) {
    if (expression.size() > limits.expression_bytes)
        throw InputError(fmt::format("filter expression of {} bytes: at most {} are allowed",
                                     expression.size(), limits.expression_bytes));
    State& state = *state_;
    state.expression = expression;
    state.limits = limits;
    state.time_left = limits.time;
    state.batch.name_of = std::move(name_of);
    state.batch.deadline = Clock::now() + limits.time;

    sqlite3* db = nullptr;
    const int opened = sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, nullptr);
    state.db.reset(db);
    if (opened != SQLITE_OK) state.fail("SQLite does not open a database in memory");
    restrict_connection(db);
    sqlite3_create_module(db, "catalogue", &catalogue_module, &state.batch);
    add_python_functions(db);
    sqlite3_progress_handler(db, 1000, past_deadline, &state.batch);

    const auto sql = fmt::format("SELECT c.rowid FROM catalogue AS c WHERE {}", sql_of(expression));
    sqlite3_stmt* statement = nullptr;
    const int prepared = sqlite3_prepare_v3(db, sql.c_str(), static_cast<int>(sql.size()) + 1,
                                            SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    state.statement.reset(statement);
    state.batch.pass_on();
    // Its words and kinds are right by now, which leaves SQLite's limits.
    if (prepared != SQLITE_OK) state.fail(fmt::format("too complex for SQLite: {}", sqlite3_errmsg(db)));
}

RowFilter::~RowFilter() = default;
RowFilter::RowFilter(RowFilter&&) noexcept = default;
RowFilter& RowFilter::operator=(RowFilter&&) noexcept = default;

void RowFilter::select(std::span<const KernelConfig> records, const std::function<void(std::size_t)>& hit) {
    State& state = *state_;
    const auto start = Clock::now();
    state.batch.records = records;
    state.batch.deadline = start + state.time_left;
    int rc = SQLITE_ROW;
    while ((rc = sqlite3_step(state.statement.get())) == SQLITE_ROW)
        hit(static_cast<std::size_t>(sqlite3_column_int64(state.statement.get(), 0)));
    const std::string message = rc == SQLITE_DONE ? std::string() : sqlite3_errmsg(state.db.get());
    sqlite3_reset(state.statement.get());
    state.time_left -= Clock::now() - start;
    state.batch.pass_on();
    if (rc == SQLITE_INTERRUPT || state.time_left <= Clock::duration::zero())
        state.fail(
            fmt::format("stopped, it needs more than the {} ms that are allowed", state.limits.time.count()));
    if (rc != SQLITE_DONE) state.fail(message);
}

} // namespace fmha::catalog
