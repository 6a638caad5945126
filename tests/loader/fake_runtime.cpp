#include "tests/loader/fake_runtime.hpp"

#include <elf.h>

#include <cstring>
#include <sstream>

namespace fmha::loader::test {
namespace {

constexpr Status good{};
constexpr Status bad_handle{400, Fault::other};

} // namespace

Status FakeRuntime::next() {
    if (lost_) return *loss;
    return calls_++ == failing_call ? failure : good;
}

const std::vector<unsigned char>* FakeRuntime::allocation_of(const void* address) const {
    const auto* at = static_cast<const unsigned char*>(address);
    for (const auto& [begin, bytes] : memory_)
        if (at >= begin && at < begin + bytes.size()) return &bytes;
    return nullptr;
}

bool FakeRuntime::holds(const void* address) const {
    return allocation_of(address) != nullptr;
}

Status FakeRuntime::range_of(const void* address, const void*& begin, std::size_t& bytes) {
    if (const Status status = next(); !status.ok()) return status;
    const auto* found = allocation_of(address);
    if (found == nullptr) return bad_handle;
    begin = found->data();
    bytes = found->size();
    return good;
}

Status FakeRuntime::versions(RuntimeVersions& out) {
    out = {60443484, 60443484};
    return next();
}

Status FakeRuntime::device_count(int& out) {
    out = devices;
    return next();
}

Status FakeRuntime::properties(int, DeviceProperties& out) {
    out = device;
    return next();
}

Status FakeRuntime::set_device(int index) {
    if (const Status status = next(); !status.ok()) return status;
    current_ = index;
    return select(index);
}

Status FakeRuntime::memory_info(std::size_t& free, std::size_t& total) {
    free = total = static_cast<std::size_t>(device.memory_bytes);
    return next();
}

Status FakeRuntime::allocate(std::size_t bytes, void*& out) {
    if (const Status status = next(); !status.ok()) return status;
    // Filled with bytes that are neither poison nor zero, so that memory that was never copied to shows.
    std::vector<unsigned char> memory(bytes, 0xA5);
    out = memory.data();
    memory_.emplace(memory.data(), std::move(memory));
    return good;
}

Status FakeRuntime::release(void* memory) {
    if (lost_) return *loss;
    return memory_.erase(static_cast<const unsigned char*>(memory)) == 1 ? good : bad_handle;
}

Status FakeRuntime::copy(void* to, const void* from, std::size_t bytes, CopyKind kind, void*) {
    if (const Status status = next(); !status.ok()) return status;
    if (bytes == 0) return good;
    const bool to_is_right = holds(to) == (kind != CopyKind::to_host);
    const bool from_is_right = holds(from) == (kind != CopyKind::to_device);
    if (!to_is_right || !from_is_right) return bad_handle;
    std::memcpy(to, from, bytes);
    return good;
}

Status FakeRuntime::fill(void* memory, unsigned char value, std::size_t bytes, void*) {
    if (const Status status = next(); !status.ok()) return status;
    std::memset(memory, value, bytes);
    return good;
}

Status FakeRuntime::synchronise_stream(void*) {
    if (loss) lost_ = true;
    return next();
}

Status FakeRuntime::record_event(void* event, void*) {
    const Status status = next();
    return status.ok() && !handles_.contains(event) ? bad_handle : status;
}

Status FakeRuntime::synchronise_event(void*) {
    return next();
}

Status FakeRuntime::elapsed_ms(void*, void*, float& out) {
    out = 2.0F;
    return next();
}

Status FakeRuntime::create(void*& out) {
    if (const Status status = next(); !status.ok()) return status;
    std::vector<unsigned char> byte(1);
    out = byte.data();
    handles_.emplace(byte.data(), std::move(byte));
    return good;
}

Status FakeRuntime::destroy(void* handle) {
    if (lost_) return *loss;
    modules_.erase(handle);
    return handles_.erase(handle) == 1 ? good : bad_handle;
}

Status FakeRuntime::load_module(const void* image, void*& out) {
    ++loads_;
    if (const Status status = create(out); !status.ok()) return status;
    modules_[out] = std::string(static_cast<const char*>(image) + sizeof(Elf64_Ehdr));
    return good;
}

Status FakeRuntime::function(void* module, const char* symbol, void*& out) {
    if (const Status status = next(); !status.ok()) return status;
    std::istringstream lines(modules_.at(module));
    for (std::string name, text; lines >> name >> text;)
        if (name == symbol) {
            out = const_cast<KernelConfig*>(&*functions_.insert(*parse_identifier<KernelConfig>(text)).first);
            return good;
        }
    return {500, Fault::no_symbol};
}

Status FakeRuntime::allow_dynamic_lds(void*, std::uint32_t bytes) {
    allowed_lds_ = std::max(allowed_lds_, bytes);
    return next();
}

Status FakeRuntime::encode(const hip_target::TensorMapSpec& map, hip_target::TensorMapBits& out) {
    if (const Status status = next(); !status.ok()) return status;
    maps_.push_back(map);
    out = {};
    out.word[0] = maps_.size();
    return good;
}

Status FakeRuntime::launch(void* function, const LaunchShape& shape, const void* argument, void*) {
    if (const Status status = next(); !status.ok()) return status;
    last_shape_ = shape;
    const KernelConfig& config = *static_cast<const KernelConfig*>(function);
    if (config.algorithm.pipeline != Pipeline::ws) {
        run(config, *static_cast<const FwdArgs*>(argument));
        return good;
    }
    const auto& parameter = *static_cast<const hip_target::WsParameter<FwdArgs>*>(argument);
    last_maps_.clear();
    for (const hip_target::TensorMapBits& bits : parameter.launch.maps)
        last_maps_.push_back(bits.word[0] == 0 ? hip_target::TensorMapSpec{} : maps_.at(bits.word[0] - 1));
    run(config, parameter.args);
    return good;
}

std::string fake_image(const std::string& arch, const std::map<std::string, KernelConfig>& kernels,
                       int code_object_version) {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_ABIVERSION] = static_cast<unsigned char>(code_object_version - 2);
    header.e_machine = 224;
    header.e_flags = arch == "gfx950" ? 0x54F : arch == "gfx942" ? 0x54C : 0x53F;
    std::string image(reinterpret_cast<const char*>(&header), sizeof header);
    for (const auto& [symbol, config] : kernels) image += symbol + " " + identifier(config) + "\n";
    return image;
}

} // namespace fmha::loader::test
