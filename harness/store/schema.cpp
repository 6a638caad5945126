#include "harness/store/schema.hpp"

#include "dispatcher/types/error.hpp"

#include <array>
#include <fmt/format.h>

namespace fmha::store {
namespace {

/// "fmha", in the header of the file.
constexpr std::int64_t application = 0x666d6861;

/// Step n leads from version n to n + 1. A step that was released is never edited; a change is another step.
constexpr std::array steps{
    // Runs and the results of cases. Texts that repeat stand once, in `word`.
    R"(CREATE TABLE word(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE run(
  run INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, selection TEXT NOT NULL,
  command TEXT NOT NULL, version TEXT NOT NULL, commit_id TEXT NOT NULL, machine TEXT NOT NULL,
  compiler TEXT NOT NULL, driver TEXT NOT NULL, target TEXT NOT NULL, arch TEXT NOT NULL,
  started TEXT NOT NULL, seconds REAL NOT NULL, shard INTEGER NOT NULL, shards INTEGER NOT NULL,
  asked INTEGER NOT NULL, identity TEXT NOT NULL, verdict TEXT NOT NULL);
CREATE TABLE result(
  result INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  name INTEGER NOT NULL REFERENCES word, nth INTEGER NOT NULL, kernel INTEGER NOT NULL REFERENCES word,
  family INTEGER NOT NULL REFERENCES word, tier INTEGER NOT NULL REFERENCES word,
  labels INTEGER NOT NULL REFERENCES word, about INTEGER NOT NULL REFERENCES word,
  outcome TEXT NOT NULL, reason TEXT NOT NULL, message INTEGER NOT NULL REFERENCES word,
  pattern INTEGER NOT NULL REFERENCES word, numerics INTEGER NOT NULL REFERENCES word,
  reproduce INTEGER NOT NULL REFERENCES word, worst TEXT NOT NULL, rows INTEGER NOT NULL,
  elements INTEGER NOT NULL, sampled INTEGER NOT NULL, seed INTEGER NOT NULL,
  kernel_seconds REAL, reference_seconds REAL, seconds REAL, UNIQUE(run, name, nth));
CREATE INDEX result_by_name ON result(name);
CREATE INDEX result_by_kernel ON result(kernel);
CREATE TABLE margin(
  result INTEGER NOT NULL REFERENCES result ON DELETE CASCADE, nth INTEGER NOT NULL,
  gate INTEGER NOT NULL REFERENCES word, tensor INTEGER NOT NULL REFERENCES word, passed INTEGER NOT NULL,
  required INTEGER NOT NULL, ratio REAL, detail INTEGER NOT NULL REFERENCES word,
  PRIMARY KEY(result, nth)) WITHOUT ROWID;
CREATE VIEW results AS
  SELECT run.run, run.started, run.commit_id, run.target, run.arch, n.text AS name, k.text AS kernel,
         f.text AS family, outcome, reason, m.text AS message, kernel_seconds, result.seconds, result
  FROM result JOIN run USING (run) JOIN word n ON n.id = name JOIN word k ON k.id = kernel
  JOIN word f ON f.id = family JOIN word m ON m.id = message;
CREATE VIEW margins AS
  SELECT results.run, started, name, kernel, g.text AS gate, t.text AS tensor, ratio, passed, required
  FROM margin JOIN results USING (result) JOIN word g ON g.id = gate JOIN word t ON t.id = tensor;)",
    // Times of `fmha bench`, resources of `fmha build --audit`, counts of `fmha parity`.
    R"(CREATE TABLE time(
  run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE, name INTEGER NOT NULL REFERENCES word,
  kernel INTEGER NOT NULL REFERENCES word, round INTEGER NOT NULL, outcome TEXT NOT NULL,
  message INTEGER NOT NULL REFERENCES word, median REAL, low REAL, high REAL, best REAL, samples INTEGER NOT NULL,
  places INTEGER NOT NULL, flops REAL, bytes REAL, PRIMARY KEY(run, name, kernel, round)) WITHOUT ROWID;
CREATE TABLE resource(
  run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE, kernel INTEGER NOT NULL REFERENCES word,
  arch TEXT NOT NULL, compiler INTEGER NOT NULL REFERENCES word, vgprs INTEGER NOT NULL, agprs INTEGER NOT NULL,
  sgprs INTEGER NOT NULL, lds_bytes INTEGER NOT NULL, scratch_bytes INTEGER NOT NULL, vgpr_spills INTEGER NOT NULL,
  sgpr_spills INTEGER NOT NULL, occupancy INTEGER NOT NULL, code_bytes INTEGER NOT NULL, compile_ms INTEGER NOT NULL,
  PRIMARY KEY(run, kernel, arch)) WITHOUT ROWID;
CREATE TABLE count(
  run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE, subject INTEGER NOT NULL REFERENCES word,
  unit TEXT NOT NULL, value INTEGER NOT NULL, PRIMARY KEY(run, subject)) WITHOUT ROWID;
CREATE VIEW times AS
  SELECT run.run, run.started, run.commit_id, run.target, run.arch, n.text AS name, k.text AS kernel, round, outcome,
         median, low, high, best, samples, flops, bytes
  FROM time JOIN run USING (run) JOIN word n ON n.id = name JOIN word k ON k.id = kernel;
CREATE VIEW resources AS
  SELECT run.started, run.commit_id, k.text AS kernel_name, resource.*
  FROM resource JOIN run USING (run) JOIN word k ON k.id = resource.kernel;
CREATE VIEW counts AS
  SELECT run.run, run.started, run.commit_id, s.text AS subject, value, unit
  FROM count JOIN run USING (run) JOIN word s ON s.id = count.subject;)",
    // Changes that `fmha gate --accept` was told of.
    R"(CREATE TABLE accepted(
  id INTEGER PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL, series TEXT NOT NULL, subject TEXT NOT NULL,
  before TEXT NOT NULL, after TEXT NOT NULL, value REAL, reason TEXT NOT NULL);)",
    // The GPU that a result is of; NULL on the processor, and in rows of older programs.
    R"(ALTER TABLE result ADD COLUMN device INTEGER;
DROP VIEW IF EXISTS results;
CREATE VIEW results AS
  SELECT run.run, run.started, run.commit_id, run.target, run.arch, n.text AS name, k.text AS kernel,
         f.text AS family, outcome, reason, m.text AS message, kernel_seconds, result.seconds, result, device
  FROM result JOIN run USING (run) JOIN word n ON n.id = name JOIN word k ON k.id = kernel
  JOIN word f ON f.id = family JOIN word m ON m.id = message;)",
    // The tracker of a result that an entry of --waivers is about.
    R"(ALTER TABLE result ADD COLUMN tracker TEXT NOT NULL DEFAULT '';
DROP VIEW IF EXISTS results;
CREATE VIEW results AS
  SELECT run.run, run.started, run.commit_id, run.target, run.arch, n.text AS name, k.text AS kernel,
         f.text AS family, outcome, reason, tracker, m.text AS message, kernel_seconds, result.seconds, result, device
  FROM result JOIN run USING (run) JOIN word n ON n.id = name JOIN word k ON k.id = kernel
  JOIN word f ON f.id = family JOIN word m ON m.id = message;)"};

} // namespace

std::int64_t newest_schema() {
    return static_cast<std::int64_t>(steps.size());
}

std::int64_t schema_of(const Database& database) {
    if (database.empty()) return 0;
    if (database.number("PRAGMA application_id") != application)
        throw InputError(fmt::format("{}: is no store of fmha: it is a database of something else",
                                     database.file().string()));
    return database.number("PRAGMA user_version");
}

void migrate(const Database& database) {
    const auto checked = [&] {
        const std::int64_t version = schema_of(database);
        if (version > newest_schema())
            throw InputError(fmt::format("{}: was written by a newer fmha, with schema {}; this one knows {}",
                                         database.file().string(), version, newest_schema()));
        if (version < 1 && !database.empty())
            throw InputError(fmt::format("{}: is damaged: it has tables, and schema {}, which no fmha wrote",
                                         database.file().string(), version));
        return version;
    };
    if (checked() == newest_schema()) return;
    Transaction transaction(database);
    // Another process may have done it meanwhile.
    for (auto version = checked(); version < newest_schema(); ++version)
        database.run(steps[static_cast<std::size_t>(version)]);
    database.run(
        fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", application, newest_schema()));
    transaction.commit();
}

} // namespace fmha::store
