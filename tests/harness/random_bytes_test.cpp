// A kernel that forgets a part of its outputs besides O.

#include "harness/cases/load.hpp"
#include "harness/run/case_runner.hpp"
#include "harness/run/catalogue_kernels.hpp"
#include "harness/run/planned_kernels.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "kernels/targets/host/numerics.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <utility>
#include <vector>

namespace fmha::harness::test {
namespace {

const std::string arch = "gfx950";

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

TEST(RandomBytes, SmokeNoticesThoseOfTheFirstKeyTileOnly) {
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
