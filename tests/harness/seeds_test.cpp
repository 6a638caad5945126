// Smoke notices mistakes by one: each comparison and each quotient of the program's masks and extents, wrong by one in
// either direction, turns a case of the subset below red, unless it is listed as equivalent, with a proof.
// With FMHA_ALL_SEEDS in the environment all of them are planted, otherwise a quarter.

#include "harness/cases/case_problem.hpp"
#include "harness/cases/load.hpp"
#include "harness/gates/attention_outputs.hpp"
#include "harness/run/case_runner.hpp"
#include "harness/run/case_tensors.hpp"
#include "harness/run/catalogue_kernels.hpp"
#include "harness/run/planned_kernels.hpp"
#include "harness/run/worker_pool.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "kernels/targets/host/numerics.hpp"
#include "tests/kernels/seeded/seed.hpp"
#include "tests/kernels/seeded/seeded_kernel.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <memory>
#include <set>
#include <sys/resource.h>
#include <thread>
#include <utility>

namespace fmha::harness::test {
namespace {

using fmha::test::planted;
using fmha::test::seed_places;
using fmha::test::SeedPlace;

const std::string arch = "gfx950";

/// The host target, with the program whose mistakes a test chooses.
class SeededTarget final : public Target {
  public:
    std::string_view name() const override { return "seeded"; }
    const std::string& arch() const override { return test::arch; }
    std::optional<std::string> cannot_execute(const KernelConfig& config) const override {
        return host_target::cannot_execute(config);
    }
    StageKernel make(const KernelConfig& config) const override {
        return {{}, fmha::test::seeded_kernel(config), host_target::numerics_of(config)};
    }
};

/// Cases of the smoke tier, enough to notice what can be noticed; those that notice most come first.
const std::vector<Case>& subset() {
    static const auto cases =
        load_cases({"fwd/tile_edges", "fwd/tile_edges_short", "fwd/tile_walk", "fwd/alibi_edges",
                    "fwd/sink_tokens[seqlen=90:200,dtype=fp16,mask=b:-1,1,2,fill=indexed]@1",
                    "fwd/odd_head_dims[hdim=40,dtype=fp16]@1", "fwd/odd_head_dims[hdim=72:104,dtype=fp16]@1",
                    "fwd/"
                    "fp8_block_scales[batch=1,seqlen_q=260,seqlen_k=300,block_scale_q=128,block_scale_k=128,"
                    "mode=batch,mask=b]@1"},
                   {.root = FMHA_CASES_DIR, .planned_tile = house_tiles(arch)});
    return cases;
}

/// A mistake that changes nothing that a launch of a house kernel of forward gives.
struct Equivalent {
    std::string_view header, expression;
    int by;
};

constexpr Equivalent equivalents[] = {
    // Positions beyond ±2^29 lie beyond every tile, and so do their neighbours.
    {"mask.hpp", "position > far", -1},
    {"mask.hpp", "position > far", +1},
    {"mask.hpp", "position < -far", -1},
    {"mask.hpp", "position < -far", +1},
    // y = seqlen_q hides no key on the left of any row, so sink tokens add none: they are subject to the same right bound.
    {"mask.hpp", "out.y < seqlen_q", +1},
    // A key tile more is visited between the first one and the window. It lies before the window, hence inside the tensors,
    // and `sees` hides all of it: its weights are 0, maxima and sums stay, and random bytes of hidden keys are no output.
    {"mask.hpp", "prefix_end > 0", -1},
    {"mask.hpp", "first_key / n0", -1},
    {"mask.hpp", "sink_keys > end_key", +1},
    {"mask.hpp", "(sink_keys + n0 - 1) / n0", +1},
    {"mask.hpp", "prefix >= tiles.begin", -1},
    // prefix = begin: the prefix ends where the window begins, so that the jump from one to the other is the next tile.
    {"mask.hpp", "prefix >= tiles.begin", +1},
    // A key tile more is visited behind the last key. `sees` hides all of it, and the host takes no step over its values.
    {"mask.hpp", "end_key > key_count", +1},
    {"mask.hpp", "(end_key + n0 - 1) / n0", +1},
    // A key tile more before the window for a block of rows that see no sink tokens, because its first row is row seqlen_k: `sees` asks for each row.
    {"mask.hpp", "row0 < mask.sink_rows", +1},
    // With first_key = 0 both set what is there. −1 stays −1: −1 / n0 is tile 0 as well, and −1 < end_key differs from
    // 0 < end_key for end_key = 0 alone, which makes the empty range [0, 0).
    {"mask.hpp", "first_key < 0", -1},
    {"mask.hpp", "first_key < 0", +1},
    // At equality both sides of the choice are the same number.
    {"mask.hpp", "end_key > key_count", -1},
    {"mask.hpp", "sink_keys > end_key", -1},
    {"mask.hpp", "row + upper < columns", +1},
    // first_key = end_key: an empty window. The range that it makes holds no tile, or the one with key first_key − 1, which
    // `sees` hides.
    {"mask.hpp", "first_key < end_key", +1},
    // sink_keys = 0: the prefix of 0 tiles leaves the range as it is.
    {"mask.hpp", "sink_keys > 0", -1},
    // Not reached with first_key = end_key: sink tokens come with a left bound ≥ 0 and a right bound ≥ 0 or none, so that
    // the first row of a block, being below seqlen_k, sees a key, unless end_key ≤ 0, and then sink_keys ≤ 0.
    {"mask.hpp", "first_key >= end_key", +1},
    // A tile that is seen whole is asked key by key, and all are seen.
    {"mask.hpp", "cols <= columns", -1},
    {"mask.hpp", "cols - 1 < upper", -1},
    {"mask.hpp", "rows - 1 + lower <= 0", -1},
    // The host reads block scales by element and asks for no matrix of them; the emulated kernels do.
    {"matrix.hpp", "(size + block - 1) / block", -1},
    {"matrix.hpp", "(size + block - 1) / block", +1},
    {"matrix.hpp", "(read + block - 1) / block", -1},
    {"matrix.hpp", "(read + block - 1) / block", +1},
    {"matrix.hpp", "(written + block - 1) / block", -1},
    {"matrix.hpp", "(written + block - 1) / block", +1},
    // House kernels pad head dimensions by 0 or 1, and those with 0 say the dimension as their alignment, above 1.
    {"matrix.hpp", "pad == 8", -1},
    {"matrix.hpp", "pad == 8", +1},
    {"matrix.hpp", "alignment > 0", -1},
    {"matrix.hpp", "alignment > 0", +1},
    // Positions are those of tiles, and no block of scales ends inside a tile: the position after the first of a tile
    // is in the same block.
    {"matrix.hpp", "row / quant.block_scale_size_q", +1},
    {"matrix.hpp", "tile.first / quant.block_scale_size_k", +1},
    {"matrix.hpp", "tile.first / quant.block_scale_size_k #2", +1},
    // Lines in pieces are those of batch prefill's vectorised pages; forward's matrices, which these cases read, have none. The
    // mistakes of faulty_prefill.hpp read pieces wrongly.
    {"matrix.hpp", "vector > 1", -1},
    {"matrix.hpp", "vector > 1", +1},
    {"matrix.hpp", "in_line / paged.vector", -1},
    {"matrix.hpp", "in_line / paged.vector", +1},
    {"matrix.hpp", "paged.vector > 1", -1},
    {"matrix.hpp", "paged.vector > 1", +1},
};

std::string describe(const SeedPlace& place, int by) {
    return fmt::format("{}: {} {:+}", place.header, place.expression, by);
}

/// A case of the subset, its kernel and what that gives without a mistake.
class Prepared {
  public:
    Prepared(const Case& c, const KernelSource& source)
        : case_(&c), tensors_(family_of(c.family), c, fp8_flavour(arch), CaseRunOptions{}),
          kernel_(source.planned(to_problem(c, arch), nullptr)), right_(outputs()) {}

    /// Whether the kernel writes something else by now.
    bool differs() { return !right_.first_difference(outputs()).empty() || stray_; }
    const Case& of_case() const { return *case_; }

  private:
    Outputs outputs() {
        CaseData& here = tensors_.here();
        here.tensors().refill(Poison::nan);
        kernel_.instance->launch(here.invocation(), Stream{});
        Outputs written = here.outputs(KernelFamily::fwd);
        stray_ = here.tensors().stray_write().has_value();
        return written;
    }

    const Case* case_;
    CaseTensors tensors_;
    StageKernel kernel_;
    bool stray_ = false;
    Outputs right_;
};

/// The first case that notices the mistake that is planted now; "" when none does. A case on which the kernel writes what
/// it wrote before is not judged again.
std::string noticed_by(const std::vector<std::unique_ptr<Prepared>>& prepared, const KernelSource& source) {
    std::string seen;
    for (const auto& one : prepared) {
        if (!one->differs()) continue;
        for (const auto& result : run_case(one->of_case(), source, {}))
            if (!is_green(result.outcome)) {
                const auto* gate = result.first_failure();
                return fmt::format("{} of {}", gate != nullptr ? gate->gate : result.message, result.name);
            }
        seen = fmt::format("seen and not minded by {}", one->of_case().id);
    }
    return seen;
}

/// Ends this process when it has computed for so many seconds more: a range of tiles that is wrong by one may have no end.
void limit_processor_time(rlim_t seconds) {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    rlimit limit{};
    getrlimit(RLIMIT_CPU, &limit);
    limit.rlim_cur = static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + seconds;
    setrlimit(RLIMIT_CPU, &limit);
}

TEST(Seeds, SmokeNoticesEveryMistakeThatIsNotEquivalent) {
    const auto source = house_kernels(std::make_shared<SeededTarget>());
    std::vector<std::unique_ptr<Prepared>> prepared;
    for (const auto& c : subset()) prepared.push_back(std::make_unique<Prepared>(c, *source));

    std::set<std::string> listed;
    for (const auto& [header, expression, by] : equivalents)
        listed.insert(describe({0, header, expression}, by));
    std::vector<std::pair<SeedPlace, int>> mistakes;
    for (const auto& place : seed_places())
        for (const int by : {-1, 1}) mistakes.emplace_back(place, by);
    ASSERT_GE(mistakes.size(), 60U);
    // Every fourth one by default, all of them at night.
    if (std::getenv("FMHA_ALL_SEEDS") == nullptr) {
        for (std::size_t i = 0; i < mistakes.size(); ++i)
            if (i % 4 != 0) listed.erase(describe(mistakes[i].first, mistakes[i].second));
        for (std::size_t i = 0; 4 * i < mistakes.size(); ++i) mistakes[i] = mistakes[4 * i];
        mistakes.resize((mistakes.size() + 3) / 4);
    }

    PoolOptions options;
    options.jobs = static_cast<int>(std::thread::hardware_concurrency());
    std::size_t noticed = 0;
    run_isolated(
        mistakes.size(), options,
        [&](std::size_t i) {
            limit_processor_time(30);
            planted() = {mistakes[i].first.number, mistakes[i].second};
            return noticed_by(prepared, *source);
        },
        [&](std::size_t i, const TaskEnd& end) {
            const auto name = describe(mistakes[i].first, mistakes[i].second);
            const bool alive = end.kind == TaskEnd::Kind::done;
            const bool survives = alive && (end.answer.empty() || end.answer.starts_with("seen"));
            fmt::print("{:60} {}\n", name, end.answer.empty() ? "survives" : end.answer);
            const bool equivalent = listed.contains(name);
            EXPECT_EQ(survives, equivalent) << name << ": " << end.answer;
            // It changes nothing at all, rather than something that no gate minds.
            EXPECT_TRUE(!equivalent || end.answer.empty()) << name << ": " << end.answer;
            noticed += survives ? 0U : 1U;
            listed.erase(name);
            return true;
        });
    EXPECT_THAT(listed, testing::IsEmpty()) << "listed as equivalent, and no longer in the headers";
    EXPECT_GT(noticed, mistakes.size() / 3);
}

/// A kernel that stores the random bytes of the first key tile only.
class ForgetfulBytes final : public KernelInstance {
  public:
    explicit ForgetfulBytes(std::shared_ptr<const KernelInstance> correct) : correct_(std::move(correct)) {}
    const KernelConfig& config() const override { return correct_->config(); }
    std::string name() const override { return correct_->name(); }
    void launch(const Invocation& invocation, Stream stream) const override {
        const auto& args = std::get<FwdArgs>(invocation);
        const std::vector<std::uint8_t> before = later_bytes(args);
        correct_->launch(invocation, stream);
        std::size_t next = 0;
        each_later_byte(args, [&](std::uint8_t& byte) { byte = before[next++]; });
    }

  private:
    template <class Visit>
    void each_later_byte(const FwdArgs& args, Visit visit) const {
        if (!args.randval.present()) return;
        for (std::int64_t b = 0; b < args.shape.batch; ++b)
            for (std::int64_t h = 0; h < args.shape.nhead_q; ++h)
                for (std::int64_t i = 0; i < args.shape.seqlen_q; ++i)
                    for (std::int64_t j = config().algorithm.tile.n0; j < args.shape.seqlen_k; ++j)
                        visit(static_cast<std::uint8_t*>(args.randval.data)[args.randval.offset(b, h, i, j)]);
    }
    std::vector<std::uint8_t> later_bytes(const FwdArgs& args) const {
        std::vector<std::uint8_t> bytes;
        each_later_byte(args, [&](std::uint8_t& byte) { bytes.push_back(byte); });
        return bytes;
    }

    std::shared_ptr<const KernelInstance> correct_;
};

class ForgetfulTarget final : public Target {
  public:
    std::string_view name() const override { return "forgetful"; }
    const std::string& arch() const override { return test::arch; }
    std::optional<std::string> cannot_execute(const KernelConfig& config) const override {
        return host_target::cannot_execute(config);
    }
    StageKernel make(const KernelConfig& config) const override {
        return {{},
                std::make_shared<ForgetfulBytes>(host_target::make_instance(config)),
                host_target::numerics_of(config)};
    }
};

TEST(Seeds, SmokeNoticesRandomBytesOfTheFirstKeyTileOnly) {
    const auto source = house_kernels(std::make_shared<ForgetfulTarget>());
    std::size_t stored = 0, noticed = 0;
    for (const auto& c :
         load_cases({"fwd/tile_walk"}, {.root = FMHA_CASES_DIR, .planned_tile = house_tiles(arch)})) {
        if (!c.store_randval) continue;
        ++stored;
        for (const auto& result : run_case(c, *source, {})) noticed += is_green(result.outcome) ? 0U : 1U;
    }
    EXPECT_GT(stored, 0U);
    EXPECT_EQ(noticed, stored);
}

} // namespace
} // namespace fmha::harness::test
