#include "harness/store/store.hpp"

#include "dispatcher/types/error.hpp"
#include "harness/results/case_seed.hpp"
#include "harness/results/result_json.hpp"
#include "harness/store/schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>
#include <thread>

namespace fmha::store {
namespace {

using harness::CaseResult;

/// A JSON text of the store as `read` takes it.
template <class Read>
auto from_json(const std::string& text, const Database& database, const Read& read) {
    try {
        return read(Json::parse(text));
    } catch (const JsonError& error) {
        throw InputError(fmt::format("{}: is damaged: {}", database.file().string(), error.what()));
    }
}

template <class Enum>
Enum enum_of(const std::string& text, const Database& database) {
    if (const auto value = parse_enum<Enum>(text)) return *value;
    throw InputError(fmt::format("{}: is damaged: \"{}\" stands where {} was expected",
                                 database.file().string(), text, allowed_names<Enum>()));
}

/// The identity of a run, whose digests tell which program and kernels it is of.
Json identity_of(const std::string& text, const Database& database) {
    const Json identity = from_json(text, database, [](const Json& json) { return json; });
    const auto damaged = [&](std::string_view what, const Json& value, std::string_view expected) {
        return InputError(fmt::format("{}: is damaged: {} is {}, expected {}", database.file().string(), what,
                                      value.dump(), expected));
    };
    if (!identity.is_object()) throw damaged("the identity of a run", identity, "an object");
    for (const char* key : {"program_sha256", "kernels_sha256"})
        if (identity.contains(key) && !identity.at(key).is_string())
            throw damaged(fmt::format("{} of the identity of a run", key), identity.at(key), "a text");
    return identity;
}

RunRecord run_of(const Statement& row, const Database& database) {
    RunRecord run;
    int column = 0;
    run.id = row.text(column++);
    run.kind = enum_of<RunKind>(row.text(column++), database);
    for (std::string* text : {&run.selection, &run.command, &run.version, &run.commit, &run.machine,
                              &run.compiler, &run.driver, &run.target, &run.arch, &run.started, &run.verdict})
        *text = row.text(column++);
    run.seconds = row.real(column++);
    run.shard = row.integer(column++);
    run.shards = row.integer(column++);
    run.asked = row.integer(column++);
    run.identity = identity_of(row.text(column), database);
    return run;
}

void read_margins(std::int64_t result, CaseResult& into, Statement& margins) {
    margins.with(result);
    while (margins.step())
        into.gates.push_back({margins.text(0), margins.text(1), margins.integer(2) != 0,
                              margins.integer(3) != 0, margins.real(4), margins.text(5)});
}

/// Waits for the program that creates the file. It holds no lock between its steps, which take milliseconds.
void await_tables(const Database& database, std::chrono::milliseconds patience) {
    const auto end = std::chrono::steady_clock::now() + std::min(patience, Store::creation);
    while (schema_of(database) == 0 && database.empty()) {
        if (std::chrono::steady_clock::now() >= end)
            throw EmptyStore(fmt::format("{}: is empty, it is no store", database.file().string()));
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
}

} // namespace

bool looks_like_store(const std::filesystem::path& file) {
    constexpr std::string_view beginning = "SQLite format 3";
    std::error_code failure;
    // Of a pipe, what is read is gone.
    if (!std::filesystem::is_regular_file(file, failure)) return false;
    std::ifstream stream(file, std::ios::binary);
    std::array<char, beginning.size()> read{};
    return stream.read(read.data(), read.size()) && std::string_view(read.data(), read.size()) == beginning;
}

Store::Store(const std::filesystem::path& file, Access access, std::chrono::milliseconds patience)
    : database_(std::make_unique<Database>(file, access, patience)) {
    if (access == Access::read) {
        await_tables(*database_, patience);
        // Only a writer can bring it up to date.
        if (schema_of(*database_) < newest_schema())
            database_ = std::make_unique<Database>(file, Access::write, patience);
    }
    migrate(*database_);
}

std::vector<RunRecord> Store::runs() const {
    std::vector<RunRecord> runs;
    auto rows = database_->prepare(
        "SELECT id, kind, selection, command, version, commit_id, machine, compiler, driver, "
        "target, arch, started, verdict, seconds, shard, shards, asked, identity "
        "FROM run ORDER BY run");
    while (rows.step()) runs.push_back(run_of(rows, *database_));
    return runs;
}

std::vector<CaseResult> Store::results(const std::string& id) const {
    std::vector<CaseResult> results;
    auto margins = database_->prepare(
        "SELECT g.text, t.text, passed, required, ratio, d.text FROM margin JOIN word g ON g.id = gate "
        "JOIN word t ON t.id = tensor JOIN word d ON d.id = detail WHERE result = ? ORDER BY nth");
    auto rows = database_->prepare(
        "SELECT n.text, k.text, f.text, t.text, l.text, a.text, outcome, reason, m.text, p.text, u.text, "
        "r.text, "
        "worst, rows, elements, sampled, seed, kernel_seconds, reference_seconds, result.seconds, tracker, "
        "device, result "
        "FROM result JOIN run USING (run) JOIN word n ON n.id = name JOIN word k ON k.id = kernel "
        "JOIN word f ON f.id = family JOIN word t ON t.id = tier JOIN word l ON l.id = labels "
        "JOIN word a ON a.id = about JOIN word m ON m.id = message JOIN word p ON p.id = pattern "
        "JOIN word u ON u.id = numerics JOIN word r ON r.id = reproduce WHERE run.id = ? ORDER BY n.text, "
        "nth");
    rows.with(id);
    while (rows.step()) {
        CaseResult result;
        int column = 0;
        for (std::string* text : {&result.name, &result.kernel}) *text = rows.text(column++);
        result.family = enum_of<ApiFamily>(rows.text(column++), *database_);
        result.tier = enum_of<harness::Tier>(rows.text(column++), *database_);
        result.labels = from_json(rows.text(column++), *database_,
                                  [](const Json& labels) { return labels.get<std::vector<std::string>>(); });
        result.about = rows.text(column++);
        result.outcome = enum_of<harness::Outcome>(rows.text(column++), *database_);
        result.not_run_reason = enum_of<harness::NotRunReason>(rows.text(column++), *database_);
        for (std::string* text : {&result.message, &result.pattern, &result.numerics, &result.reproduce})
            *text = rows.text(column++);
        result.worst = from_json(rows.text(column++), *database_, harness::deviations_from_json);
        result.rows = rows.integer(column++);
        result.elements = rows.integer(column++);
        result.sampled = rows.integer(column++) != 0;
        result.seed = static_cast<std::uint64_t>(rows.integer(column++));
        for (double* seconds : {&result.kernel_seconds, &result.reference_seconds, &result.seconds})
            *seconds = rows.real(column++);
        result.tracker = rows.text(column++);
        if (const int device = column++; !rows.null(device))
            result.device = static_cast<int>(rows.integer(device));
        read_margins(rows.integer(column), result, margins);
        results.push_back(std::move(result));
    }
    return results;
}

std::vector<TimeRecord> Store::times(const std::string& id) const {
    std::vector<TimeRecord> times;
    auto rows = database_->prepare(
        "SELECT n.text, k.text, round, outcome, m.text, median, low, high, best, samples, places, flops, "
        "bytes "
        "FROM time JOIN run USING (run) JOIN word n ON n.id = name JOIN word k ON k.id = kernel "
        "JOIN word m ON m.id = message WHERE run.id = ? ORDER BY n.text, k.text, round");
    rows.with(id);
    while (rows.step())
        times.push_back({rows.text(0), rows.text(1), rows.integer(2),
                         enum_of<harness::BenchOutcome>(rows.text(3), *database_), rows.text(4), rows.real(5),
                         rows.real(6), rows.real(7), rows.real(8), rows.integer(9), rows.integer(10),
                         rows.real(11), rows.real(12)});
    return times;
}

std::vector<ResourceRecord> Store::resources(const std::string& id) const {
    std::vector<ResourceRecord> resources;
    auto rows = database_->prepare(
        "SELECT k.text, resource.arch, c.text, vgprs, agprs, sgprs, lds_bytes, scratch_bytes, vgpr_spills, "
        "sgpr_spills, occupancy, code_bytes, compile_ms FROM resource JOIN run USING (run) "
        "JOIN word k ON k.id = kernel JOIN word c ON c.id = resource.compiler WHERE run.id = ? ORDER BY "
        "k.text");
    rows.with(id);
    while (rows.step()) {
        ResourceRecord one{rows.text(0), rows.text(1), rows.text(2)};
        int column = 3;
        for (std::int64_t* value :
             {&one.vgprs, &one.agprs, &one.sgprs, &one.lds_bytes, &one.scratch_bytes, &one.vgpr_spills,
              &one.sgpr_spills, &one.occupancy, &one.code_bytes, &one.compile_ms})
            *value = rows.integer(column++);
        resources.push_back(std::move(one));
    }
    return resources;
}

std::vector<CountRecord> Store::counts(const std::string& id) const {
    std::vector<CountRecord> counts;
    auto rows = database_->prepare("SELECT s.text, unit, value FROM count JOIN run USING (run) "
                                   "JOIN word s ON s.id = subject WHERE run.id = ? ORDER BY s.text");
    rows.with(id);
    while (rows.step()) counts.push_back({rows.text(0), rows.text(1), rows.integer(2)});
    return counts;
}

std::map<std::string, double> Store::case_seconds(const std::string& target, const std::string& arch) const {
    std::map<std::string, double> seconds;
    auto rows = database_->prepare(
        "SELECT n.text, sum(result.seconds) FROM result JOIN run USING (run) JOIN word n ON n.id = name "
        "WHERE kind = 'verify' AND verdict != '' AND shards = 1 AND target = ? AND arch = ? "
        "GROUP BY run.run, name ORDER BY run.run");
    rows.with(target, arch);
    while (rows.step()) {
        seconds[harness::without_seed(rows.text(0))] = rows.real(1);
    }
    return seconds;
}

std::vector<AcceptedRecord> Store::accepted() const {
    std::vector<AcceptedRecord> records;
    auto rows = database_->prepare(
        "SELECT at, kind, series, subject, before, after, value, reason FROM accepted ORDER BY id");
    while (rows.step())
        records.push_back({rows.text(0), rows.text(1), rows.text(2), rows.text(3), rows.text(4), rows.text(5),
                           rows.real(6), rows.text(7)});
    return records;
}

void Store::accept(std::span<const AcceptedRecord> records) const {
    Transaction transaction(*database_);
    auto row =
        database_->prepare("INSERT INTO accepted(at, kind, series, subject, before, after, value, reason) "
                           "VALUES (?,?,?,?,?,?,?,?)");
    for (const AcceptedRecord& r : records)
        row.with(r.at, r.kind, r.series, r.subject, r.before, r.after, r.value, r.reason).run();
    transaction.commit();
}

} // namespace fmha::store
