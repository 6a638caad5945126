// Products of warp groups (wgmma): every number of columns, A from LDS and from registers, B in lines of its columns and in lines of
// the depth. The emulated machine's against plain sums, a device's against the emulated machine's bit for bit where sums are exact,
// and against the u_a that kernels declare with random mantissas.

#include "kernels/loader/code_object.hpp"
#include "kernels/loader/device.hpp"
#include "kernels/loader/plugin.hpp"
#include "kernels/programs/formats.hpp"
#include "kernels/targets/hip/emulated/team_machine.hpp"
#include "kernels/targets/hip/numerics.hpp"
#include "tests/hip_target/device_probe.hpp"
#include "tests/hip_target/instructions/group_probe_args.hpp"

#include <gmock/gmock.h>

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace fmha::hip_target::test {
namespace {

constexpr const char* source = "tests/hip_target/instructions/group_probe.hip";
constexpr int threads = 128, rows = 64, depth = 16, words_a = GroupProductArgs::words_a;

struct Form {
    ElementType type = ElementType::fp16;
    int columns = 16, steps = 1;
    bool a_in_registers = false;
};
std::string to_string(const Form& form) {
    return fmt::format("m64n{}k16 of {}, {} steps, A from {}", form.columns, fmha::to_string(form.type),
                       form.steps, form.a_in_registers ? "registers" : "LDS");
}

std::vector<Form> forms(int steps) {
    std::vector<Form> all;
    for (const ElementType type : {ElementType::fp16, ElementType::bf16})
        for (int columns = 16; columns <= 256; columns += 16)
            for (const bool a_in_registers : {false, true})
                all.push_back({type, columns, steps, a_in_registers});
    return all;
}

using Draw = std::function<float(std::mt19937&)>;

/// The operands of a product as matrices of codes, and D in registers.
struct Operands {
    Operands(const Form& f, std::mt19937& random, const Draw& value, const Draw& accumulator)
        : form(f), a(static_cast<std::size_t>(rows * f.steps * depth)),
          b(static_cast<std::size_t>(f.columns * f.steps * depth)),
          d(static_cast<std::size_t>(threads * f.columns / 2)) {
        for (auto* matrix : {&a, &b})
            for (std::uint16_t& code : *matrix)
                code = static_cast<std::uint16_t>(kernels::encode(value(random), form.type));
        for (float& one : d) one = accumulator(random);
    }
    int all_depth() const { return form.steps * depth; }
    std::uint16_t a_at(int row, int k) const { return a[static_cast<std::size_t>(row * all_depth() + k)]; }
    std::uint16_t b_at(int k, int column) const {
        return b[static_cast<std::size_t>(column * all_depth() + k)];
    }
    double value(std::uint16_t code) const { return kernels::decode(code, kernels::format_of(form.type)); }

    Form form;
    std::vector<std::uint16_t> a, b; ///< rows × depth, columns × depth
    std::vector<float> d;            ///< columns / 2 of every thread
};

/// PTX: the fragment of D, and that of A whose four words are pairs along the depth.
int row_of(int thread, int r) {
    return 16 * (thread / 32) + thread % 32 / 4 + 8 * (r / 2 % 2);
}
int column_of(int thread, int r) {
    return 8 * (r / 4) + 2 * (thread % 4) + r % 2;
}

/// LDS with A at 0, of 64 lines, and B behind it, and a thread's part of A. Lines of B are its columns, or elements of the depth.
struct Image {
    explicit Image(const Operands& of)
        : b_lines(of.form.a_in_registers ? of.all_depth() : of.form.columns),
          b(SwizzledTile::bytes(rows, of.all_depth(), of.form.type)),
          lds(static_cast<std::size_t>(
              b + SwizzledTile::bytes(b_lines, of.form.a_in_registers ? of.form.columns : of.all_depth(),
                                      of.form.type))),
          a(static_cast<std::size_t>(threads * words_a)) {
        const int block_elements = SwizzledTile::block_elements(of.form.type);
        const auto put = [&](int at, int lines, int line, int element, std::uint16_t code) {
            const int block = element / block_elements;
            const int address = at + block * SwizzledTile::block_bytes(lines) +
                                line * SwizzledTile::line_bytes + element % block_elements * 2;
            std::memcpy(lds.data() + SwizzledTile::swizzled(address), &code, sizeof code);
        };
        for (int k = 0; k < of.all_depth(); ++k) {
            for (int row = 0; row < rows; ++row) put(0, rows, row, k, of.a_at(row, k));
            for (int column = 0; column < of.form.columns; ++column)
                of.form.a_in_registers ? put(b, b_lines, k, column, of.b_at(k, column))
                                       : put(b, b_lines, column, k, of.b_at(k, column));
        }
        for (int thread = 0; thread < threads; ++thread)
            for (int w = 0; w < 4 * of.form.steps; ++w) {
                const int row = row_of(thread, 2 * (w % 4)),
                          k = w / 4 * depth + 2 * (thread % 4) + 8 * (w % 4 / 2);
                a[static_cast<std::size_t>(thread * words_a + w)] =
                    of.a_at(row, k) | std::uint32_t{of.a_at(row, k + 1)} << 16U;
            }
    }
    int b_lines, b;
    std::vector<std::byte> lds;
    std::vector<std::uint32_t> a;
};

/// D as the emulated machine computes it. `leading` and `stride` of B's descriptor are added to.
std::vector<float> emulated(const Operands& operands, int more_leading = 0, int more_stride = 0) {
    const Form& form = operands.form;
    const Image image(operands);
    const auto bytes = static_cast<int>(image.lds.size());
    const WsMaps maps;
    TeamBlock block(bytes + TeamBlock::unit_bytes, 1, threads, Schedule::in_turn, 0);
    std::vector<float> out(operands.d.size());
    block.run([&](int agent) {
        block.init_barrier(bytes, 1);
        block.expect(agent, bytes, bytes);
        // Lines of 64 elements as they lie, which the copy engine would swizzle: so its input is swizzled back.
        std::vector<std::byte> plain(image.lds.size());
        for (std::size_t i = 0; i < plain.size(); ++i)
            plain[i] = image.lds[static_cast<std::size_t>(SwizzledTile::swizzled(static_cast<int>(i)))];
        constexpr int lines = 8;
        TensorMapSpec map{.base = plain.data(),
                          .type = form.type,
                          .extents = {64, bytes / SwizzledTile::line_bytes, 1, 1, 1},
                          .strides = {2, SwizzledTile::line_bytes, 16, 16, 16},
                          .box = {64, lines, 1, 1, 1}};
        for (int line = 0; line < bytes / SwizzledTile::line_bytes; line += lines)
            block.copy_box(agent, map, {{0, line, 0, 0, 0}}, line * SwizzledTile::line_bytes, bytes);
        block.wait(agent, bytes, 0);
        EmulatedTeamMachine machine(block, MatrixUnit::nvidia, maps, agent);
        const int count = form.columns / 2;
        EmulatedRegisters<float> d(threads, count);
        EmulatedRegisters<std::uint32_t> a(threads, words_a);
        for (int thread = 0; thread < threads; ++thread) {
            for (int r = 0; r < count; ++r)
                d.at(thread, r) = operands.d[static_cast<std::size_t>(thread * count + r)];
            for (int w = 0; w < words_a; ++w)
                a.at(thread, w) = image.a[static_cast<std::size_t>(thread * words_a + w)];
        }
        machine.fence_products(a);
        machine.fence_products(d);
        constexpr int eight_lines = 1024;
        const MatrixDescriptor left = machine.descriptor(0, 16, eight_lines);
        const MatrixDescriptor right = machine.descriptor(
            image.b, SwizzledTile::block_bytes(image.b_lines) + more_leading, eight_lines + more_stride);
        for (int k = 0; k < form.steps; ++k) {
            const int block_elements = SwizzledTile::block_elements(form.type),
                      in_block = k * depth / block_elements, in_line = k * depth % block_elements * 2;
            if (form.a_in_registers)
                machine.multiply_registers(form.type, d, a, 4 * k,
                                           right + k * depth * SwizzledTile::line_bytes, true);
            else
                machine.multiply_lds(
                    form.type, d, left + (in_block * SwizzledTile::block_bytes(rows) + in_line),
                    right + (in_block * SwizzledTile::block_bytes(image.b_lines) + in_line), true);
        }
        machine.commit_products(d);
        machine.wait_products(0, d);
        for (int thread = 0; thread < threads; ++thread)
            for (int r = 0; r < count; ++r)
                out[static_cast<std::size_t>(thread * count + r)] = d.at(thread, r);
    });
    return out;
}

/// The terms of element `i` of D, its accumulator first.
std::vector<double> terms_of(const Operands& operands, std::size_t i) {
    const int count = operands.form.columns / 2, thread = static_cast<int>(i) / count,
              r = static_cast<int>(i) % count;
    std::vector<double> terms{static_cast<double>(operands.d[i])};
    for (int k = 0; k < operands.all_depth(); ++k)
        terms.push_back(operands.value(operands.a_at(row_of(thread, r), k)) *
                        operands.value(operands.b_at(k, column_of(thread, r))));
    return terms;
}

/// Numbers whose products and sums are exact in every order.
Operands whole(const Form& form, std::mt19937& random) {
    const auto number = [](std::mt19937& from) {
        return static_cast<float>(std::uniform_int_distribution(-15, 15)(from));
    };
    return {form, random, number, number};
}

/// All mantissa bits that the types have, and accumulators larger by up to 2^14.
Operands mantissas(const Form& form, std::mt19937& random) {
    const auto draw = [](int least, int most) {
        return [=](std::mt19937& from) {
            const float size = std::ldexp(std::uniform_real_distribution(1.0F, 2.0F)(from),
                                          std::uniform_int_distribution(least, most)(from));
            return std::uniform_int_distribution(0, 1)(from) == 1 ? -size : size;
        };
    };
    return {form, random, draw(-4, 0), draw(-8, 14)};
}

/// The largest |error| / (n · Σ|terms|) of sums of n terms.
double lost(const Operands& operands, const std::vector<float>& results) {
    double worst = 0.0;
    for (std::size_t i = 0; i < results.size(); ++i) {
        double sum = 0.0, size = 0.0;
        const std::vector<double> terms = terms_of(operands, i);
        for (const double term : terms) {
            sum += term;
            size += std::abs(term);
        }
        worst = std::max(worst, std::abs(static_cast<double>(results[i]) - sum) /
                                    (static_cast<double>(terms.size()) * size));
    }
    return worst;
}

double declared(ElementType type) {
    KernelConfig config;
    config.arch = "sm_90";
    config.signature.data_type = type == ElementType::bf16 ? DataType::bf16 : DataType::fp16;
    config.algorithm.pipeline = Pipeline::ws;
    return numerics_of(config).u_a;
}

TEST(GroupProducts, OfTheEmulatedMachineAreTheSums) {
    std::mt19937 random(1); // NOLINT(cert-msc51-cpp): the same in every run
    for (const int steps : {1, GroupProductArgs::most_steps})
        for (const Form& form : forms(steps)) {
            if (steps > 1 && form.columns % 48 != 16) continue; // a third of them
            const Operands operands = whole(form, random);
            const std::vector<float> results = emulated(operands);
            for (std::size_t i = 0; i < results.size(); ++i) {
                double sum = 0.0;
                for (const double term : terms_of(operands, i)) sum += term;
                ASSERT_EQ(static_cast<double>(results[i]), sum) << to_string(form) << ", element " << i;
            }
        }
}

/// The comparison can fail: another distance between blocks, or between eight lines, is another product.
TEST(GroupProducts, OfOtherDescriptorsAreOthers) {
    std::mt19937 random(2); // NOLINT(cert-msc51-cpp)
    for (const bool a_in_registers : {false, true}) {
        const Operands operands = whole({ElementType::bf16, 128, 4, a_in_registers}, random);
        const auto right = emulated(operands);
        EXPECT_NE(emulated(operands, 0, -128), right);
        if (a_in_registers) {
            EXPECT_NE(emulated(operands, -1024), right);
        } else {
            EXPECT_EQ(emulated(operands, -1024), right) << "a block of columns has no distance to the next";
        }
    }
}

TEST(GroupProducts, OfTheEmulatedMachineAreAsPreciseAsKernelsDeclare) {
    std::mt19937 random(3); // NOLINT(cert-msc51-cpp)
    for (const ElementType type : {ElementType::fp16, ElementType::bf16}) {
        const Operands operands = mantissas({type, 64, 1, true}, random);
        const double found = lost(operands, emulated(operands));
        EXPECT_LE(found, declared(type));
        EXPECT_GT(found, 0.0) << "nothing was rounded";
        // Sums cut off after 13 places would be noticed.
        std::vector<float> rough = emulated(operands);
        for (float& one : rough)
            one = std::ldexp(std::trunc(std::ldexp(one, 13 - std::ilogb(one))), std::ilogb(one) - 13);
        EXPECT_GT(lost(operands, rough), declared(type));
    }
}

TEST(GroupProducts, CompileForHopper) {
    const std::optional<std::string> image = compiled_probe(source, "sm_90");
    if (!image) GTEST_SKIP() << "no compiler for sm_90";
    EXPECT_NO_THROW(loader::check_code_object(*image, "sm_90", "the probe"));
    for (const Form& form : forms(1))
        EXPECT_NE(image->find(fmt::format("multiply_{}_{}", form.columns, fmha::to_string(form.type))),
                  std::string::npos);
    keep_object("group_products", "sm_90", *image);
}

std::vector<float> on_device(const loader::Device& device, const loader::Module& module,
                             const Operands& operands) {
    const Image image(operands);
    const loader::DeviceStream stream(device);
    const auto bytes = [](const auto& values) { return values.size() * sizeof(values[0]); };
    loader::DeviceBuffer lds(device, image.lds.size()), a(device, bytes(image.a)),
        d(device, bytes(operands.d));
    lds.upload(stream, image.lds.data(), lds.bytes());
    a.upload(stream, image.a.data(), a.bytes());
    d.upload(stream, operands.d.data(), d.bytes());
    GroupProductArgs args{};
    args.lds = reinterpret_cast<const std::uint32_t*>(lds.data());
    args.a = reinterpret_cast<const std::uint32_t*>(a.data());
    args.d = reinterpret_cast<float*>(d.data());
    args.lds_bytes = static_cast<std::int32_t>(image.lds.size());
    args.b = image.b;
    args.b_lines = image.b_lines;
    args.steps = operands.form.steps;
    args.a_in_registers = operands.form.a_in_registers ? 1 : 0;
    const auto memory = static_cast<std::uint32_t>(image.lds.size());
    module
        .function(fmt::format("multiply_{}_{}", operands.form.columns, fmha::to_string(operands.form.type)),
                  memory)
        .launch({.blocks = 1, .threads = threads, .dynamic_lds = memory}, &args, stream.handle());
    std::vector<float> result(operands.d.size());
    d.download(stream, result.data(), d.bytes());
    stream.synchronise();
    return result;
}

TEST(GroupProducts, OfTheDeviceAreThoseOfTheModelAndAsPreciseAsKernelsDeclare) {
    std::optional<loader::Device> device;
    try {
        device.emplace(loader::open_runtime(loader::plugin_folders()), 0);
    } catch (const DeviceError& error) {
        GTEST_SKIP() << error.what();
    }
    if (device->properties().arch != "sm_90") GTEST_SKIP() << device->text() << " has no such products";
    const auto image = probe_for_device("group_products", source, "sm_90");
    if (!image) GTEST_SKIP() << "no compiler for sm_90";
    const loader::Module module(*device, *image, "the probe");
    std::mt19937 random(4); // NOLINT(cert-msc51-cpp)
    for (const int steps : {1, 5, GroupProductArgs::most_steps})
        for (const Form& form : forms(steps)) {
            const Operands operands = whole(form, random);
            ASSERT_EQ(on_device(*device, module, operands), emulated(operands)) << to_string(form);
        }
    for (const ElementType type : {ElementType::fp16, ElementType::bf16})
        for (const bool a_in_registers : {false, true}) {
            double found = 0.0;
            for (int columns = 16; columns <= 256; columns += 16)
                for (int n = 0; n < 4; ++n) {
                    const Operands operands = mantissas({type, columns, 1, a_in_registers}, random);
                    found = std::max(found, lost(operands, on_device(*device, module, operands)));
                }
            EXPECT_LE(found, declared(type));
            fmt::print("{}: wgmma of {}, A from {}, loses at most 2^{:.1f}, declared 2^{:.0f}\n",
                       device->text(), fmha::to_string(type), a_in_registers ? "registers" : "LDS",
                       std::log2(found), std::log2(declared(type)));
        }
}

} // namespace
} // namespace fmha::hip_target::test
