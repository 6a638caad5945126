#pragma once

#include "kernels/loader/device_runtime.hpp"

#include <gmock/gmock.h>

namespace fmha::loader::test {

class MockRuntime : public DeviceRuntime {
  public:
    MOCK_METHOD(std::string_view, platform, (), (const, override));
    MOCK_METHOD(std::string, describe, (int), (const, override));
    MOCK_METHOD(Status, versions, (RuntimeVersions&), (override));
    MOCK_METHOD(Status, device_count, (int&), (override));
    MOCK_METHOD(Status, properties, (int, DeviceProperties&), (override));
    MOCK_METHOD(Status, set_device, (int), (override));
    MOCK_METHOD(Status, memory_info, (std::size_t&, std::size_t&), (override));
    MOCK_METHOD(Status, allocate, (std::size_t, void*&), (override));
    MOCK_METHOD(Status, release, (void*), (override));
    MOCK_METHOD(Status, range_of, (const void*, const void*&, std::size_t&), (override));
    MOCK_METHOD(Status, copy, (void*, const void*, std::size_t, CopyKind, void*), (override));
    MOCK_METHOD(Status, fill, (void*, unsigned char, std::size_t, void*), (override));
    MOCK_METHOD(Status, create_stream, (void*&), (override));
    MOCK_METHOD(Status, destroy_stream, (void*), (override));
    MOCK_METHOD(Status, synchronise_stream, (void*), (override));
    MOCK_METHOD(Status, create_event, (void*&), (override));
    MOCK_METHOD(Status, destroy_event, (void*), (override));
    MOCK_METHOD(Status, record_event, (void*, void*), (override));
    MOCK_METHOD(Status, synchronise_event, (void*), (override));
    MOCK_METHOD(Status, elapsed_ms, (void*, void*, float&), (override));
    MOCK_METHOD(Status, load_module, (const void*, void*&), (override));
    MOCK_METHOD(Status, unload_module, (void*), (override));
    MOCK_METHOD(Status, function, (void*, const char*, void*&), (override));
    MOCK_METHOD(Status, allow_dynamic_lds, (void*, std::uint32_t), (override));
    MOCK_METHOD(Status, encode, (const hip_target::TensorMapSpec&, hip_target::TensorMapBits&), (override));
    MOCK_METHOD(Status, launch, (void*, const LaunchShape&, const void*, void*), (override));
};

} // namespace fmha::loader::test
