// Everything that a kernel may reach goes to the device, and everything that it may have written comes back.

#include "dispatcher/types/args_fields.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/data/fwd_tensors.hpp"
#include "harness/run/device_stage.hpp"
#include "tests/loader/fake_runtime.hpp"

#include <gmock/gmock.h>

#include <cstring>
#include <set>

namespace fmha::harness::test {
namespace {

using loader::Device;
using loader::Fault;
using loader::Status;
using loader::test::FakeRuntime;

/// Group mode with every length array, block scales, sinks and random bytes; with one kind of bias at a time these are all
/// pointers that there are. No kernel takes it.
Case everything(BiasType bias) {
    Case c;
    c.id = "test/everything@1";
    c.mode = Mode::group;
    c.data_type = DataType::fp8fp32;
    c.hdim_q = c.hdim_v = 64;
    c.seqlen_q = {40, 20};
    c.seqlen_k = {50, 70};
    c.physical_q = {44, 20};
    c.length_form_q = c.length_form_k = LengthForm::both;
    c.bias = bias;
    c.bias_rank = 1;
    c.qscale = QScale::blockscale;
    c.sink_logits = SinkLogits::normal;
    c.p_drop = 0.2;
    c.store_randval = true;
    return c;
}

/// A kernel that hands its arguments over.
class Observer final : public KernelInstance {
  public:
    explicit Observer(std::function<void(const FwdArgs&)> see) : see_(std::move(see)) {}
    const KernelConfig& config() const override { return config_; }
    std::string name() const override { return "observer"; }
    void launch(const Invocation& invocation, Stream) const override { see_(std::get<FwdArgs>(invocation)); }

  private:
    KernelConfig config_;
    std::function<void(const FwdArgs&)> see_;
};

using Pointers = std::map<std::string, const unsigned char*>;

Pointers pointers_of(FwdArgs args) {
    Pointers found;
    each_pointer(args, [&](const std::string& path, auto& pointer) {
        found[path] = reinterpret_cast<const unsigned char*>(pointer);
    });
    return found;
}

TEST(Stage, EveryPointerBecomesTheDevices) {
    std::set<std::string> moved, all;
    for (const BiasType bias : {BiasType::elementwise, BiasType::alibi}) {
        const Case c = everything(bias);
        FwdTensors tensors(c, Fp8Flavour::ocp);
        const FwdArgs host_args = tensors.args();
        const Pointers host = pointers_of(host_args);
        FakeRuntime runtime;
        DeviceStage stage(Device(runtime, 0));
        int launches = 0;
        const auto see = [&](const FwdArgs& args) {
            ++launches;
            for (const auto& [path, pointer] : pointers_of(args)) {
                all.insert(path);
                ASSERT_EQ(pointer == nullptr, host.at(path) == nullptr) << path;
                if (pointer == nullptr) continue;
                moved.insert(path);
                EXPECT_TRUE(runtime.holds(pointer)) << path;
                EXPECT_EQ(std::memcmp(pointer, host.at(path), 4), 0) << path << ": other bytes";
            }
            // Independent of the field lists: no word of the arguments may be an address of the host's tensors.
            const auto blocks = tensors.memory();
            for (std::size_t at = 0; at + sizeof(void*) <= sizeof args; at += alignof(void*)) {
                const unsigned char* word = nullptr;
                std::memcpy(&word, reinterpret_cast<const unsigned char*>(&args) + at, sizeof word);
                for (const MemoryBlock& block : blocks)
                    EXPECT_FALSE(word >= block.begin() && word < block.end())
                        << block.name << " at byte " << at;
            }
        };
        stage.launch(Observer(see), tensors.args(), tensors.set());
        EXPECT_EQ(launches, 1);
    }
    EXPECT_EQ(moved, all) << "a pointer of the arguments that no case here has";
    EXPECT_EQ(all.size(), 20U);
}

TEST(Stage, AHostPointerNeverReachesTheDevice) {
    // A vector that grew after the arguments were taken would be such a pointer: it lies in no block.
    const Case c = everything(BiasType::alibi);
    FwdTensors tensors(c, Fp8Flavour::ocp);
    std::vector<float> elsewhere(100'000, 1.0F);
    const FwdArgs args = tensors.args();
    for (const MemoryBlock& block : tensors.memory()) {
        const auto* begin = reinterpret_cast<const unsigned char*>(elsewhere.data());
        EXPECT_FALSE(begin >= block.begin() && begin < block.end());
    }
    EXPECT_EQ(pointers_of(args).at("score.alibi_slopes"),
              static_cast<const unsigned char*>(tensors.tensor("alibi_slopes").view().data));
}

Case plain() {
    Case c;
    c.id = "test/plain@1";
    c.hdim_q = c.hdim_v = 64;
    c.seqlen_q = {20};
    c.seqlen_k = {30};
    return c;
}

/// The value that the host sees after a kernel on the device wrote `value` at `offset` bytes from the base of O.
std::optional<std::string> stray_after(std::int64_t offset) {
    const Case c = plain();
    FwdTensors tensors(c, Fp8Flavour::ocp);
    FakeRuntime runtime;
    DeviceStage stage(Device(runtime, 0));
    stage.launch(
        Observer([&](const FwdArgs& args) { static_cast<unsigned char*>(args.o.data)[offset] = 0x11; }),
        tensors.args(), tensors.set());
    return tensors.stray_write();
}

TEST(Stage, StrayWritesComeBack) {
    EXPECT_EQ(stray_after(0), std::nullopt);
    EXPECT_EQ(stray_after(-2), "o: element -1 (guard before)");
    EXPECT_EQ(stray_after(-4000), "o: element -2000 (guard before)");
    EXPECT_EQ(stray_after(64 * 2), "o: element 64 (between logical elements)");
    const Case c = plain();
    const FwdTensors tensors(c, Fp8Flavour::ocp);
    const std::int64_t end = tensors.tensor("o").layout().segment_elements * 2;
    EXPECT_THAT(stray_after(end).value_or(""), testing::HasSubstr("guard after"));
    EXPECT_THAT(stray_after(end + 4000).value_or(""), testing::HasSubstr("guard after"));
}

TEST(Stage, AWrittenInputComesBack) {
    const Case c = plain();
    FwdTensors tensors(c, Fp8Flavour::ocp);
    const std::uint64_t before = tensors.input_checksum();
    FakeRuntime runtime;
    DeviceStage stage(Device(runtime, 0));
    stage.launch(Observer([](const FwdArgs&) {}), tensors.args(), tensors.set());
    EXPECT_EQ(tensors.input_checksum(), before);
    stage.launch(Observer([](const FwdArgs& args) { static_cast<unsigned char*>(args.k.data)[8] ^= 1U; }),
                 tensors.args(), tensors.set());
    EXPECT_NE(tensors.input_checksum(), before);
}

TEST(Stage, WideTensorsKeepTheirOffsets) {
    Case c = plain();
    c.batch = 3;
    c.wide_tensor = "o";
    c.wide_batch_stride = 1 << 20;
    FwdTensors tensors(c, Fp8Flavour::ocp);
    FakeRuntime runtime;
    DeviceStage stage(Device(runtime, 0));
    stage.launch(Observer([](const FwdArgs& args) {
                     ASSERT_EQ(args.o.batch_stride, 1 << 20);
                     static_cast<std::uint16_t*>(args.o.data)[args.o.offset(2, 1, 19, 63)] = 0x3C00;
                 }),
                 tensors.args(), tensors.set());
    EXPECT_EQ(tensors.tensor("o").code(2, 1, 19, 63), 0x3C00U);
}

TEST(Stage, KeepsItsAllocations) {
    const Case small = plain();
    Case large = plain();
    large.seqlen_k = {3000};
    FakeRuntime runtime;
    {
        DeviceStage stage(Device(runtime, 0));
        const auto run = [&](const Case& c) {
            FwdTensors tensors(c, Fp8Flavour::ocp);
            stage.launch(Observer([](const FwdArgs&) {}), tensors.args(), tensors.set());
            return runtime.alive();
        };
        const std::size_t alive = run(small);
        EXPECT_EQ(run(large), alive);
        EXPECT_EQ(run(small), alive);
    }
    EXPECT_EQ(runtime.alive(), 0U);
}

TEST(Stage, WhateverFailsIsThrownAndLeaksNothing) {
    const Case c = plain();
    FwdTensors tensors(c, Fp8Flavour::ocp);
    const Observer kernel([](const FwdArgs&) {});
    int calls = 0;
    for (int failing = -1; failing < calls || failing < 0; ++failing) {
        FakeRuntime runtime;
        if (failing >= 0) runtime.failing_call = failing;
        runtime.failure = {719, Fault::other};
        try {
            DeviceStage stage(Device(runtime, 0));
            stage.launch(kernel, tensors.args(), tensors.set());
            EXPECT_LT(failing, 0) << "call " << failing << " failed and nobody said so";
            calls = runtime.calls();
        } catch (const DeviceError& error) {
            EXPECT_THAT(error.what(), testing::HasSubstr("fakeError719")) << failing;
        }
        EXPECT_EQ(runtime.alive(), 0U) << "call " << failing;
    }
    EXPECT_GT(calls, 15);
}

TEST(Stage, ALossIsRemembered) {
    const Case c = plain();
    FwdTensors tensors(c, Fp8Flavour::ocp);
    FakeRuntime runtime;
    DeviceStage stage(Device(runtime, 0));
    runtime.loss = Status{700, Fault::context_lost};
    EXPECT_FALSE(stage.lost());
    EXPECT_THROW(stage.launch(Observer([](const FwdArgs&) {}), tensors.args(), tensors.set()), DeviceLost);
    EXPECT_TRUE(stage.lost());
}

} // namespace
} // namespace fmha::harness::test
