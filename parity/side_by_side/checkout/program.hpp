#pragma once

#include "dispatcher/upstream/ck/link.hpp"
#include "parity/side_by_side/call_text.hpp"

#include <hip/hip_runtime.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#if !FMHA_CK_CHECKOUT
#error                                                                                                       \
    "the headers of a checkout are not in the way of the compiler: parity/side_by_side/checkout/build names them"
#endif

/// The shared part of the two programs: a folder with a call and its memory, the same memory on the device, and back.
namespace fmha::parity {

inline void require(hipError_t status, const std::string& what) {
    if (status != hipSuccess) throw Error(what + ": " + hipGetErrorString(status));
}

class DeviceMemory {
  public:
    explicit DeviceMemory(std::size_t bytes) : bytes_(bytes) {
        if (bytes > 0) require(hipMalloc(&data_, bytes), "allocating " + std::to_string(bytes) + " bytes");
    }
    DeviceMemory(DeviceMemory&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
    DeviceMemory(const DeviceMemory&) = delete;
    DeviceMemory& operator=(const DeviceMemory&) = delete;
    DeviceMemory& operator=(DeviceMemory&&) = delete;
    ~DeviceMemory() {
        if (data_ != nullptr) static_cast<void>(hipFree(data_));
    }
    void* data() const { return data_; }
    std::size_t bytes() const { return bytes_; }

  private:
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
};

/// The blocks of a call.
class CallMemory {
  public:
    CallMemory(std::string folder, const std::vector<CallBlock>& blocks) : folder_(std::move(folder)) {
        for (const CallBlock& block : blocks) {
            std::vector<char> content(block.bytes);
            std::ifstream file(file_of(block.name), std::ios::binary);
            if (!file.read(content.data(), static_cast<std::streamsize>(content.size())))
                throw InputError(file_of(block.name) + ": it is shorter than the call says");
            const DeviceMemory& there = blocks_.emplace(block.name, DeviceMemory(block.bytes)).first->second;
            require(hipMemcpy(there.data(), content.data(), content.size(), hipMemcpyHostToDevice),
                    "copying " + block.name);
        }
    }

    void* at(std::string_view name, std::uint64_t offset) const {
        const auto block = blocks_.find(std::string(name));
        if (block == blocks_.end() || offset > block->second.bytes())
            throw InputError("call: a pointer leads into " + std::string(name) + ", which does not go along");
        return static_cast<char*>(block->second.data()) + offset;
    }

    /// All of it, since a stray write may be anywhere.
    void bring_back() const {
        for (const auto& [name, memory] : blocks_) {
            std::vector<char> content(memory.bytes());
            require(hipMemcpy(content.data(), memory.data(), content.size(), hipMemcpyDeviceToHost),
                    "copying " + name + " back");
            std::ofstream file(file_of(name), std::ios::binary);
            if (!file.write(content.data(), static_cast<std::streamsize>(content.size())).flush())
                throw InputError(file_of(name) + ": it cannot be written");
        }
    }

  private:
    std::string file_of(const std::string& name) const { return folder_ + "/" + name + ".bin"; }

    std::string folder_;
    std::map<std::string, DeviceMemory> blocks_;
};

/// Runs the call of a folder: `launch(call, memory)` launches on the default stream and returns upstream's milliseconds, which are
/// negative when it has no kernel.
template <class Launch>
int make_call(int count, char** words, const Launch& launch) {
    const auto end = [](CallEnd kind, const std::string& sentence) {
        if (!sentence.empty()) std::fprintf(stderr, "%s\n", sentence.c_str());
        return static_cast<int>(kind);
    };
    if (count != 3)
        return end(CallEnd::broken_call, "usage: " + std::string(words[0]) + " FOLDER DEVICE\n" +
                                             "FOLDER has a call as fmha compare --ck-kernels writes it");
    try {
        require(hipSetDevice(detail::number_of<int>(words[2], "DEVICE")), "opening the device");
        const std::string folder = words[1];
        std::ifstream file(folder + "/call");
        if (!file) throw InputError(folder + "/call: it cannot be read");
        const CallText call(file);
        const CallMemory memory(folder, call.blocks());
        if (launch(call, memory) < 0.0F) return end(CallEnd::no_kernel, "");
        require(hipDeviceSynchronize(), "running the kernel");
        memory.bring_back();
        return end(CallEnd::ran, "");
    } catch (const UnsupportedInvocation& error) {
        return end(CallEnd::cannot_say, error.what());
    } catch (const std::exception& error) {
        return end(CallEnd::broken_call, error.what());
    }
}

/// The call in upstream's structures, its pointers on the device.
template <class Args>
auto theirs_of(const CallText& call, const CallMemory& memory) {
    const auto at = [&](std::string_view block, std::uint64_t offset) { return memory.at(block, offset); };
    return to_theirs(ck::Call<Args>{call.problem(), call.args<Args>(at)});
}

/// Once, without a clock, and with the kernel's name on standard output.
template <class StreamConfig>
StreamConfig once() {
    StreamConfig config{};
    config.time_kernel_ = false;
    config.log_level_ = 1;
    return config;
}

} // namespace fmha::parity
