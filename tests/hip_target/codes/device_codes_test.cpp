// Every way in which this machine's GPU converts, against the reference: the architecture's own conversions, the kernels'
// functions compiled for the device, and the stores of kernels. Code objects come from FMHA_CODES_DIR when it holds one
// for the device, so that they can be built where a compiler is and run where a GPU is.

#include "dispatcher/types/error.hpp"
#include "kernels/loader/code_object.hpp"
#include "kernels/loader/device.hpp"
#include "kernels/loader/plugin.hpp"
#include "tests/hip_target/codes/conversions.hpp"
#include "tests/hip_target/codes/probe_args.hpp"
#include "tests/hip_target/device_probe.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fmt/format.h>
#include <optional>

namespace fmha::hip_target::test {
namespace {

namespace fs = std::filesystem;
using enum ElementType;

/// The formats that the probe has a kernel for on an architecture (T-1).
std::vector<ElementType> formats_of(std::string_view arch) {
    if (arch == "gfx90a" || arch.starts_with("gfx11")) return {fp16, bf16};
    if (fp8_flavour(arch) == Fp8Flavour::fnuz) return {fp16, bf16, fp8_fnuz, bf8_fnuz};
    if (arch == "gfx950") return {fp16, bf16, fp8_ocp, bf8_ocp, fp4};
    return {fp16, bf16, fp8_ocp, bf8_ocp};
}

const fs::path probe = "tests/hip_target/codes/probe.hip";

class CodesProbe : public testing::TestWithParam<const char*> {};

/// Without a GPU this still shows that the probe is the architecture's; another machine runs its result.
TEST_P(CodesProbe, Compiles) {
    const std::string arch = GetParam();
    const std::optional<std::string> compiled = compiled_probe(probe, arch);
    if (!compiled) GTEST_SKIP() << "no compiler for " << arch;
    const std::string& image = *compiled;
    EXPECT_NO_THROW(loader::check_code_object(image, arch, "the probe"));
    for (const ElementType type : {fp16, bf16, fp8_ocp, fp8_fnuz, bf8_ocp, bf8_fnuz, fp4}) {
        const auto formats = formats_of(arch);
        const bool wanted = std::find(formats.begin(), formats.end(), type) != formats.end();
        EXPECT_EQ(image.find(fmt::format("codes_{}", to_string(type))) != std::string::npos, wanted)
            << to_string(type);
    }
    keep_object("codes", arch, image);
}

INSTANTIATE_TEST_SUITE_P(Architectures, CodesProbe,
                         testing::Values("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "sm_90"),
                         [](const auto& arch) { return std::string(arch.param); });

/// The results of the device's conversions, by Way.
std::vector<Conversions> by_device(const loader::Device& device, const loader::Module& module,
                                   ElementType type, const std::vector<float>& values) {
    const auto codes = static_cast<std::size_t>(code_count(type));
    const loader::DeviceStream stream(device);
    loader::DeviceBuffer input(device, values.size() * sizeof(float));
    input.upload(stream, values.data(), input.bytes());
    ProbeArgs args{.values = reinterpret_cast<const float*>(input.data()),
                   .value_count = static_cast<std::int64_t>(values.size()),
                   .code_count = code_count(type)};
    std::vector<loader::DeviceBuffer> decoded, encoded;
    for (int way = 0; way < ways; ++way) {
        decoded.emplace_back(device, codes * sizeof(float));
        encoded.emplace_back(device, values.size() * sizeof(std::uint32_t));
        // A result that nobody writes is neither a code nor any format's value.
        decoded.back().fill(stream, 0x5A);
        encoded.back().fill(stream, 0x5A);
        args.decoded[way] = reinterpret_cast<float*>(decoded.back().data());
        args.encoded[way] = reinterpret_cast<std::uint32_t*>(encoded.back().data());
    }
    const auto items = std::max(codes, values.size());
    module.function(fmt::format("codes_{}", to_string(type)))
        .launch({.blocks = static_cast<std::uint32_t>((items + probe_threads - 1) / probe_threads),
                 .threads = probe_threads},
                &args, stream.handle());
    std::vector<Conversions> results(ways);
    for (std::size_t way = 0; way < ways; ++way) {
        results[way].decoded.resize(codes);
        results[way].encoded.resize(values.size());
        decoded[way].download(stream, results[way].decoded.data(), decoded[way].bytes());
        encoded[way].download(stream, results[way].encoded.data(), encoded[way].bytes());
    }
    stream.synchronise();
    return results;
}

TEST(DeviceCodes, AgreeWithTheReference) {
    loader::DeviceRuntime* runtime = nullptr;
    try {
        runtime = &loader::open_runtime(loader::plugin_folders());
    } catch (const DeviceError& error) {
        GTEST_SKIP() << error.what();
    }
    const loader::Device device(*runtime, 0);
    const std::string& arch = device.properties().arch;
    const std::optional<std::string> image = probe_for_device("codes", probe, arch);
    if (!image) GTEST_SKIP() << device.text() << ": no compiler for " << arch;
    loader::check_code_object(*image, arch, "the probe");
    const loader::Module module(device, *image, "the probe");
    const bool nvidia = arch.starts_with("sm_");
    for (const ElementType type : formats_of(arch)) {
        const std::vector<float> values = probing_values(type);
        const Conversions reference = by_reference(type, values);
        const std::vector<Conversions> results = by_device(device, module, type, values);
        for (std::size_t way = 0; way < ways; ++way) {
            // AMD's conversions to 8 bits saturate by a mode bit, which kernels leave alone: they clamp before, but not
            // weights, which are within the range. So they do with 4 bits.
            const bool clamps = way != static_cast<std::size_t>(Way::instruction) &&
                                way != static_cast<std::size_t>(Way::quotient);
            const bool saturates = nvidia || element_bits(type) == 16 || clamps;
            const Differences found =
                compare(type, values, reference, results[way], saturates ? Range::all : Range::finite);
            constexpr const char* names[ways] = {"instruction", "program", "machine", "quotient"};
            EXPECT_EQ(found.count, 0)
                << device.text() << ", " << to_string(type) << " by " << names[way] << "\n"
                << found.text;
            fmt::print("{}: {} by {}: {} codes, {} values, {} differences\n", device.text(), to_string(type),
                       names[way], reference.decoded.size(), values.size(), found.count);
        }
    }
}

} // namespace
} // namespace fmha::hip_target::test
