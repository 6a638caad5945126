#include "harness/store/store.hpp"

#include "dispatcher/types/error.hpp"
#include "harness/results/result_json.hpp"

#include <fmt/format.h>

#include <random>

namespace fmha::store {

using harness::CaseResult;

struct Recording::Statements {
    explicit Statements(const Database& database)
        : add_word(database.prepare("INSERT OR IGNORE INTO word(text) VALUES (?)")),
          find_word(database.prepare("SELECT id FROM word WHERE text = ?")),
          forget(database.prepare("DELETE FROM result WHERE run = ? AND name = ?")),
          result(database.prepare(
              "INSERT INTO result(run, name, nth, kernel, family, tier, labels, about, outcome, reason, "
              "message, "
              "pattern, numerics, reproduce, worst, rows, elements, sampled, seed, kernel_seconds, "
              "reference_seconds, seconds, device, tracker) VALUES "
              "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")),
          margin(database.prepare("INSERT INTO margin VALUES (?,?,?,?,?,?,?,?)")),
          time(database.prepare("INSERT OR REPLACE INTO time VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)")),
          resource(database.prepare("INSERT OR REPLACE INTO resource VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)")),
          count(database.prepare("INSERT OR REPLACE INTO count VALUES (?,?,?,?)")) {}

    Statement add_word, find_word, forget, result, margin, time, resource, count;
};

Recording::Recording(const std::filesystem::path& file, RunRecord run, std::chrono::milliseconds patience)
    : store_(file, Access::write, patience), run_(std::move(run)),
      statements_(std::make_unique<Statements>(store_.database())) {
    const Database& database = store_.database();
    Transaction transaction(database);
    database
        .prepare("INSERT INTO run(id, kind, selection, command, version, commit_id, machine, compiler, "
                 "driver, target, "
                 "arch, started, seconds, shard, shards, asked, identity, verdict) "
                 "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,'') ON CONFLICT(id) DO NOTHING")
        .with(run_.id, to_string(run_.kind), run_.selection, run_.command, run_.version, run_.commit,
              run_.machine, run_.compiler, run_.driver, run_.target, run_.arch, run_.started, run_.seconds,
              run_.shard, run_.shards, run_.asked, run_.identity.dump())
        .run();
    auto row = database.prepare("SELECT run FROM run WHERE id = ?");
    row.with(run_.id).step();
    row_ = row.integer(0);
    row.with(run_.id); // ends the reading, which would keep the transaction open
    transaction.commit();
}

Recording::~Recording() = default;

/// Does `work` as a whole or not at all, unless something failed before.
template <class Work>
void Recording::attempt(const Work& work) {
    if (!failure_.empty()) return;
    try {
        Transaction transaction(store_.database());
        work();
        transaction.commit();
    } catch (const InputError& error) {
        failure_ = fmt::format("{}; later findings are missing from it", error.what());
    }
}

std::int64_t Recording::word(const std::string& text) {
    if (const auto known = words_.find(text); known != words_.end()) return known->second;
    statements_->add_word.with(text).run();
    statements_->find_word.with(text).step();
    const std::int64_t id = statements_->find_word.integer(0);
    statements_->find_word.with(text); // ends the reading
    words_.emplace(text, id);
    return id;
}

void Recording::write(const std::string& name, std::span<const CaseResult> results) {
    statements_->forget.with(row_, word(name)).run();
    std::int64_t nth = 0;
    for (const CaseResult& r : results) {
        // Error maps are kept of red results; of green ones the margins say enough.
        Json worst = Json::array();
        if (!harness::is_green(r.outcome))
            for (const auto& deviation : r.worst) worst.push_back(harness::to_json(deviation));
        statements_->result
            .with(row_, word(r.name), nth++, word(r.kernel), word(std::string(to_string(r.family))),
                  word(std::string(to_string(r.tier))), word(Json(r.labels).dump()), word(r.about),
                  to_string(r.outcome), to_string(r.not_run_reason), word(r.message), word(r.pattern),
                  word(r.numerics), word(r.reproduce), worst.dump(), r.rows, r.elements, r.sampled, r.seed,
                  r.kernel_seconds, r.reference_seconds, r.seconds, r.device, r.tracker)
            .run();
        const std::int64_t row = store_.database().last_row();
        std::int64_t gate_number = 0;
        for (const auto& gate : r.gates)
            statements_->margin
                .with(row, gate_number++, word(gate.gate), word(gate.tensor), gate.passed, gate.required,
                      gate.ratio, word(gate.detail))
                .run();
    }
}

void Recording::add(const std::string& name, std::span<const CaseResult> results) {
    attempt([&] { write(name, results); });
}

void Recording::add(const TimeRecord& t) {
    attempt([&] {
        statements_->time
            .with(row_, word(t.name), word(t.kernel), t.round, to_string(t.outcome), word(t.message),
                  t.median, t.low, t.high, t.best, t.samples, t.places, t.flops, t.bytes)
            .run();
    });
}

void Recording::add(std::span<const ResourceRecord> resources) {
    attempt([&] {
        for (const ResourceRecord& r : resources)
            statements_->resource
                .with(row_, word(r.kernel), r.arch, word(r.compiler), r.vgprs, r.agprs, r.sgprs, r.lds_bytes,
                      r.scratch_bytes, r.vgpr_spills, r.sgpr_spills, r.occupancy, r.code_bytes, r.compile_ms)
                .run();
    });
}

void Recording::add(std::span<const CountRecord> counts) {
    attempt([&] {
        for (const CountRecord& count : counts)
            statements_->count.with(row_, word(count.subject), count.unit, count.value).run();
    });
}

void Recording::identify(const Json& members) {
    run_.identity.update(members);
    attempt([&] {
        store_.database()
            .prepare("UPDATE run SET identity = ? WHERE run = ?")
            .with(run_.identity.dump(), row_)
            .run();
    });
}

void Recording::finish(double seconds, const std::string& verdict) {
    attempt([&] {
        store_.database()
            .prepare("UPDATE run SET seconds = ?, verdict = ? WHERE run = ?")
            .with(seconds, verdict, row_)
            .run();
    });
}

std::string new_run_id() {
    std::random_device random;
    std::string id;
    for (int n = 0; n < 4; ++n) id += fmt::format("{:08x}", random());
    return id;
}

} // namespace fmha::store
