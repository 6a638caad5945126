#include "dispatcher/c/device_side.hpp"

#include "dispatcher/types/check_values.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/type_classes.hpp"
#include "kernels/loader/kernel_library.hpp"
#include "kernels/loader/plugin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <unordered_map>
#include <variant>

namespace fmha::c {

namespace {

int checked_number(std::int64_t device) {
    if (device < 0 || device > std::numeric_limits<int>::max())
        throw InputError(fmt::format("options.device is {}; allowed: 0 and above", device));
    return static_cast<int>(device);
}

} // namespace

struct DeviceSide::Impl {
    std::shared_ptr<const loader::KernelFolder> folder;
    loader::Device device;
    ArchName arch;
    std::vector<KernelConfig> kernels;
    loader::KernelLibrary library;
    std::unordered_map<KernelConfig, std::shared_ptr<const KernelInstance>, FieldHash> loaded;

    Impl(const std::filesystem::path& path, std::int64_t number)
        : folder(std::make_shared<const loader::KernelFolder>(path)),
          device(loader::open_runtime(loader::plugin_folders()), checked_number(number)),
          arch(device.properties().arch), kernels(folder->configs(arch)), library(folder, device) {}
};

DeviceSide::DeviceSide(const std::filesystem::path& folder, std::int64_t device, std::string_view arch)
    : impl_(std::make_unique<Impl>(folder, device)) {
    if (!arch.empty() && impl_->arch.view() != arch)
        throw InputError(
            fmt::format("options.arch is {}, but {} is {}", arch, impl_->device.text(), impl_->arch.view()));
}

DeviceSide::~DeviceSide() = default;

const ArchName& DeviceSide::arch() const {
    return impl_->arch;
}

const std::vector<KernelConfig>& DeviceSide::kernels() const {
    return impl_->kernels;
}

// Others of the caller's libraries may have made another device current.
void DeviceSide::make_current() {
    loader::DeviceRuntime& runtime = impl_->device.runtime();
    loader::require(runtime, runtime.set_device(impl_->device.index()),
                    fmt::format("selecting {}", impl_->device.text()));
}

void DeviceSide::launch(const KernelConfig& config, const Invocation& arguments, void* stream) {
    make_current();
    auto& kernel = impl_->loaded[config];
    if (kernel == nullptr) kernel = impl_->library.load(config);
    kernel->launch(arguments, {stream});
}

void DeviceSide::check_starts(DataType type, const Invocation& arguments, void* stream) {
    if (!packs_keys(type)) return;
    std::visit(
        [&](const auto& args) {
            if constexpr (requires { args.lengths; })
                if (args.shape.mode == Mode::group && args.lengths.seqstart_k != nullptr)
                    fmha::check_starts(type, fetch(args.lengths.seqstart_k, args.shape.batch + 1, stream));
        },
        arguments);
}

void* DeviceSide::allocate(std::int64_t bytes) {
    make_current();
    loader::DeviceRuntime& runtime = impl_->device.runtime();
    void* memory = nullptr;
    // A zero-sized allocation may be null, which would read as absent.
    loader::require(runtime, runtime.allocate(bytes == 0 ? 1 : static_cast<std::size_t>(bytes), memory),
                    fmt::format("allocating {} bytes on {}", bytes, impl_->device.text()));
    return memory;
}

void DeviceSide::release(void* memory) {
    if (memory == nullptr) return;
    make_current();
    loader::DeviceRuntime& runtime = impl_->device.runtime();
    loader::require(runtime, runtime.release(memory),
                    fmt::format("releasing memory on {}", impl_->device.text()));
}

std::int64_t DeviceSide::room_at(const void* memory, std::int64_t wanted) {
    make_current();
    loader::DeviceRuntime& runtime = impl_->device.runtime();
    const auto* const first = static_cast<const std::byte*>(memory);
    std::int64_t room = 0;
    // Memory that was mapped piece by piece is a range of addresses, but several allocations.
    while (room < wanted) {
        const void* begin = nullptr;
        std::size_t bytes = 0;
        const loader::Status status = runtime.range_of(first + room, begin, bytes);
        if (status.fault == loader::Fault::context_lost)
            loader::require(runtime, status, fmt::format("looking for memory of {}", impl_->device.text()));
        const std::int64_t end =
            status.ok() ? static_cast<const std::byte*>(begin) - first + static_cast<std::int64_t>(bytes) : 0;
        if (end <= room) break;
        room = end;
    }
    return std::min(room, wanted);
}

const std::string& DeviceSide::text() const {
    return impl_->device.text();
}

void DeviceSide::copy(void* to, const void* from, std::int64_t bytes, Direction direction, void* stream) {
    if (bytes == 0) return;
    make_current();
    loader::DeviceRuntime& runtime = impl_->device.runtime();
    const bool up = direction == Direction::to_device;
    const auto kind = up ? loader::CopyKind::to_device : loader::CopyKind::to_host;
    loader::require(runtime, runtime.copy(to, from, static_cast<std::size_t>(bytes), kind, stream),
                    fmt::format("copying {} bytes {} {}", bytes, up ? "to" : "from", impl_->device.text()));
}

void DeviceSide::clear(void* memory, std::int64_t bytes, void* stream) {
    if (bytes == 0) return;
    make_current();
    loader::DeviceRuntime& runtime = impl_->device.runtime();
    loader::require(runtime, runtime.fill(memory, 0, static_cast<std::size_t>(bytes), stream),
                    fmt::format("clearing {} bytes on {}", bytes, impl_->device.text()));
}

std::vector<std::int32_t> DeviceSide::fetch(const std::int32_t* from, std::int64_t count, void* stream) {
    std::vector<std::int32_t> numbers(static_cast<std::size_t>(count));
    copy(numbers.data(), from, count * static_cast<std::int64_t>(sizeof numbers[0]), Direction::to_host,
         stream);
    wait(stream);
    return numbers;
}

void DeviceSide::wait(void* stream) {
    make_current();
    loader::wait_for(impl_->device.runtime(), stream);
}

double DeviceSide::seconds_of(int repeats, const std::function<void()>& pass, void* stream) {
    make_current();
    loader::Event start(impl_->device), stop(impl_->device);
    start.record(stream);
    for (int i = 0; i < repeats; ++i) pass();
    stop.record(stream);
    stop.synchronise();
    return stop.seconds_since(start);
}

} // namespace fmha::c
