// Owners of device things: every failure is a sentence, nothing leaks when any call fails, and destructors bear a lost device.

#include "kernels/loader/device.hpp"
#include "kernels/loader/event_clock.hpp"
#include "tests/loader/fake_runtime.hpp"
#include "tests/loader/mock_runtime.hpp"
#include "tests/support/sentence_of.hpp"

#include <gmock/gmock.h>

#include <array>
#include <stdexcept>

namespace fmha::loader::test {
namespace {

using fmha::test::sentence_of;
using testing::_;
using testing::DoAll;
using testing::HasSubstr;
using testing::NiceMock;
using testing::Return;
using testing::SetArgReferee;

KernelConfig some_kernel() {
    KernelConfig config;
    config.arch = "gfx950";
    config.signature.hdim_q = config.signature.hdim_v = 128;
    return config;
}

/// Uses one of everything. The device's bytes are checked afterwards, so that a call that was left out shows.
void use_everything(FakeRuntime& runtime) {
    const Device device(runtime, 0);
    const DeviceStream stream(device);
    std::array<unsigned char, 64> sent{}, got{};
    sent.fill(7);
    DeviceBuffer buffer(device, sent.size()), other(device, sent.size());
    other.fill(stream, 1);
    buffer.upload(stream, sent.data(), sent.size());
    other.copy_from(stream, buffer, 32);
    Event start(device), stop(device);
    const Module module(device, fake_image("gfx950", {{"k", some_kernel()}}), "k.hsaco");
    const Function function = module.function("k", 100'000);
    start.record(stream);
    const FwdArgs args;
    function.launch({1, 64, 100'000}, &args, stream.handle());
    stop.record(stream);
    stop.synchronise();
    EXPECT_DOUBLE_EQ(stop.seconds_since(start), 2e-3);
    EventClock clock(device, {stream.handle()});
    clock.start();
    clock.stop();
    EXPECT_THAT(clock.take_seconds(), testing::ElementsAre(testing::DoubleEq(2e-3)));
    other.download(stream, got.data(), got.size());
    stream.synchronise();
    EXPECT_EQ(got[31], 7);
    EXPECT_EQ(got[32], 1);
    EXPECT_GT(device.free_memory(), 0U);
}

TEST(EventClock, TimesEveryPassWithFewEvents) {
    FakeRuntime runtime;
    const Device device(runtime, 0);
    EventClock clock(device, {});
    EXPECT_THAT(clock.take_seconds(), testing::IsEmpty());
    for (int round = 0; round < 2; ++round) {
        for (int pass = 0; pass < 150; ++pass) {
            clock.start();
            clock.stop();
        }
        EXPECT_THAT(clock.take_seconds(),
                    testing::AllOf(testing::SizeIs(150), testing::Each(testing::DoubleEq(2e-3))));
    }
    EXPECT_EQ(runtime.alive(), 128U) << "two events for each of 64 passes that are under way";
    clock.start();
    clock.stop();
    runtime.loss = Status{719, Fault::context_lost};
    EXPECT_THROW(clock.take_seconds(), DeviceLost);
}

TEST(EventClock, StandsInTheStreamThatItTimes) {
    NiceMock<MockRuntime> runtime;
    int stream = 0, first = 0, second = 0;
    ON_CALL(runtime, device_count(_)).WillByDefault(DoAll(SetArgReferee<0>(1), Return(Status{})));
    EXPECT_CALL(runtime, create_event(_))
        .WillOnce(DoAll(SetArgReferee<0>(&first), Return(Status{})))
        .WillOnce(DoAll(SetArgReferee<0>(&second), Return(Status{})));
    const Device device(runtime, 0);
    const testing::InSequence order;
    EXPECT_CALL(runtime, record_event(&first, &stream));
    EXPECT_CALL(runtime, record_event(&second, &stream));
    EXPECT_CALL(runtime, synchronise_stream(&stream));
    EXPECT_CALL(runtime, elapsed_ms(&first, &second, _))
        .WillOnce(DoAll(SetArgReferee<2>(7.0F), Return(Status{})));
    EventClock clock(device, {&stream});
    clock.start();
    clock.stop();
    EXPECT_THAT(clock.take_seconds(), testing::ElementsAre(testing::DoubleEq(7e-3)));
}

TEST(Device, EveryCallThatFailsIsASentenceAndLeaksNothing) {
    FakeRuntime whole;
    use_everything(whole);
    EXPECT_EQ(whole.alive(), 0U);
    ASSERT_GT(whole.calls(), 15);
    for (int call = 0; call < whole.calls(); ++call) {
        FakeRuntime runtime;
        runtime.failing_call = call;
        const std::string said = sentence_of<DeviceError>([&] { use_everything(runtime); });
        EXPECT_THAT(said, HasSubstr("failed: fakeError2 (2)")) << "call " << call;
        EXPECT_EQ(runtime.alive(), 0U) << "call " << call << ": " << said;
    }
}

TEST(Device, AllocationFailureNamesBytesAndDevice) {
    FakeRuntime runtime;
    const Device device(runtime, 0);
    runtime.failing_call = runtime.calls();
    EXPECT_EQ(sentence_of<DeviceOutOfMemory>([&] { DeviceBuffer(device, 4096); }),
              "allocating 4096 bytes on device 0 (Fake GPU, gfx950) failed: fakeError2 (2)");
}

TEST(Device, LaunchFailureNamesTheKernelAndItsShape) {
    FakeRuntime runtime;
    const Device device(runtime, 0);
    const Module module(device, fake_image("gfx950", {{"k", some_kernel()}}), "k.hsaco");
    const Function function = module.function("k");
    runtime.failing_call = runtime.calls();
    runtime.failure = {701, Fault::other};
    const FwdArgs args;
    EXPECT_EQ(
        sentence_of<DeviceError>([&] {
            function.launch({3, 256, 64}, &args, nullptr);
        }),
        "launching k with 3 blocks of 256 threads and 64 bytes of dynamic LDS failed: fakeError701 (701)");
}

TEST(Device, ALostDeviceIsToldFromOtherFailuresAndBornByDestructors) {
    FakeRuntime runtime;
    runtime.loss = Status{700, Fault::context_lost};
    {
        const Device device(runtime, 0);
        const DeviceStream stream(device);
        DeviceBuffer buffer(device, 16);
        EXPECT_THAT(sentence_of<DeviceLost>([&] { stream.synchronise(); }), HasSubstr("fakeError700 (700)"));
        EXPECT_THAT(sentence_of<DeviceLost>([&] { buffer.fill(stream, 0); }), HasSubstr("filling 16 bytes"));
        EXPECT_THROW(DeviceBuffer(device, 16), DeviceLost);
    }
    EXPECT_EQ(runtime.alive(), 2U) << "a lost device takes nothing back, and nothing was thrown";
}

TEST(Device, WhateverASynchronisationReportsIsAKernelsFault) {
    FakeRuntime runtime;
    runtime.loss = Status{1, Fault::other};
    const DeviceStream stream(Device(runtime, 0));
    EXPECT_THROW(stream.synchronise(), DeviceLost);
    NiceMock<MockRuntime> other;
    ON_CALL(other, device_count(_)).WillByDefault(DoAll(SetArgReferee<0>(1), Return(Status{})));
    ON_CALL(other, synchronise_event(_)).WillByDefault(Return(Status{1, Fault::other}));
    EXPECT_THROW(Event(Device(other, 0)).synchronise(), DeviceLost);
}

TEST(Device, OneThatDoesNotExist) {
    FakeRuntime runtime;
    runtime.devices = 2;
    EXPECT_EQ(sentence_of<DeviceError>([&] { Device(runtime, 2); }), "there is no device 2; allowed: 0 to 1");
    EXPECT_THROW(Device(runtime, -1), DeviceError);
    runtime.devices = 0;
    EXPECT_EQ(sentence_of<DeviceError>([&] { Device(runtime, 0); }), "there is no device 0, and no other");
}

TEST(Buffer, StaysInsideItself) {
    FakeRuntime runtime;
    const Device device(runtime, 0);
    const DeviceStream stream(device);
    DeviceBuffer buffer(device, 16);
    std::array<unsigned char, 32> host{};
    EXPECT_THROW(buffer.upload(stream, host.data(), 17), std::out_of_range);
    EXPECT_THROW(buffer.upload(stream, host.data(), 1, 16), std::out_of_range);
    EXPECT_THROW(buffer.download(stream, host.data(), 8, static_cast<std::size_t>(-4)), std::out_of_range);
    EXPECT_NO_THROW(buffer.upload(stream, host.data(), 0, 16));
}

TEST(Buffer, OfNoBytesIsPresent) {
    FakeRuntime runtime;
    EXPECT_NE(DeviceBuffer(Device(runtime, 0), 0).data(), nullptr);
}

TEST(Buffer, MovesWithoutFreeingTwice) {
    FakeRuntime runtime;
    {
        const Device device(runtime, 0);
        DeviceBuffer one(device, 16), two(device, 16);
        one = std::move(two);
        EXPECT_EQ(runtime.alive(), 1U);
        DeviceBuffer three(std::move(one));
        EXPECT_EQ(runtime.alive(), 1U);
    }
    EXPECT_EQ(runtime.alive(), 0U);
}

TEST(Module, WrongArch) {
    FakeRuntime runtime;
    runtime.device.arch = "gfx90a";
    const Device device(runtime, 0);
    EXPECT_EQ(sentence_of<DeviceError>([&] { Module(device, fake_image("gfx942", {}), "k.hsaco"); }),
              "wrong arch: the device is gfx90a, k.hsaco holds kernels for gfx942");
    EXPECT_EQ(runtime.loads(), 0) << "a runtime that gets it may well crash";
}

TEST(Module, CorruptCodeObjects) {
    FakeRuntime runtime;
    const Device device(runtime, 0);
    EXPECT_EQ(sentence_of<DeviceError>([&] { Module(device, "hello", "k.hsaco"); }),
              "k.hsaco is not a code object: its 5 bytes are no ELF file for a GPU");
    std::string cut = fake_image("gfx950", {});
    cut[40] = 127; // where its section headers start
    cut[60] = 1;   // how many there are
    EXPECT_EQ(sentence_of<DeviceError>([&] { Module(device, cut, "k.hsaco"); }),
              "k.hsaco is cut off after 64 bytes: build it again");
    EXPECT_EQ(runtime.loads(), 0);
}

TEST(Module, ACodeObjectVersionThatTheRuntimeDoesNotRead) {
    NiceMock<MockRuntime> runtime;
    DeviceProperties properties;
    properties.name = "AMD Instinct";
    properties.arch = "gfx942";
    ON_CALL(runtime, device_count(_)).WillByDefault(DoAll(SetArgReferee<0>(1), Return(Status{})));
    ON_CALL(runtime, properties(0, _)).WillByDefault(DoAll(SetArgReferee<1>(properties), Return(Status{})));
    ON_CALL(runtime, describe(200))
        .WillByDefault(Return("hipErrorInvalidImage: device kernel image is invalid"));
    EXPECT_CALL(runtime, load_module(_, _)).WillOnce(Return(Status{200, Fault::bad_image}));
    EXPECT_CALL(runtime, unload_module(_)).Times(0);
    const Device device(runtime, 0);
    EXPECT_EQ(
        sentence_of<DeviceError>([&] { Module(device, fake_image("gfx942", {}, 6), "k.hsaco"); }),
        "loading k.hsaco (code object version 6 for gfx942) on device 0 (AMD Instinct, gfx942) failed: "
        "hipErrorInvalidImage: device kernel image is invalid (200); code object version 6 needs ROCm 6.3 or "
        "later: update ROCm, or build the kernels with its own compiler (--compiler amdclang++)");
}

TEST(Module, AMissingSymbol) {
    FakeRuntime runtime;
    const Module module(Device(runtime, 0), fake_image("gfx950", {{"k", some_kernel()}}), "k.hsaco");
    EXPECT_EQ(sentence_of<DeviceError>([&] { static_cast<void>(module.function("kk")); }),
              "finding kk in k.hsaco failed: fakeError500 (500)");
}

TEST(Module, LdsBeyondTheDefaultIsAskedForOnce) {
    FakeRuntime runtime;
    const Module module(Device(runtime, 0), fake_image("gfx950", {{"k", some_kernel()}}), "k.hsaco");
    static_cast<void>(module.function("k", 48 * 1024));
    EXPECT_EQ(runtime.allowed_lds(), 0U);
    static_cast<void>(module.function("k", 48 * 1024 + 16));
    EXPECT_EQ(runtime.allowed_lds(), 48U * 1024 + 16);
}

TEST(Destructors, AreCalledOncePerHandleAndInReverse) {
    NiceMock<MockRuntime> runtime;
    int things = 0;
    ON_CALL(runtime, device_count(_)).WillByDefault(DoAll(SetArgReferee<0>(1), Return(Status{})));
    const auto hand_out = [&](void*& out) {
        out = &things;
        ++things;
        return Status{};
    };
    ON_CALL(runtime, create_stream(_)).WillByDefault(hand_out);
    ON_CALL(runtime, create_event(_)).WillByDefault(hand_out);
    const testing::InSequence order;
    EXPECT_CALL(runtime, destroy_event(&things)).WillOnce(Return(Status{999, Fault::context_lost}));
    EXPECT_CALL(runtime, destroy_stream(&things)).WillOnce(Return(Status{999, Fault::context_lost}));
    const Device device(runtime, 0);
    const DeviceStream stream(device);
    const Event event(device);
    EXPECT_EQ(things, 2);
}

} // namespace
} // namespace fmha::loader::test
