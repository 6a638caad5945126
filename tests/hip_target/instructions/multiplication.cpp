#include "tests/hip_target/instructions/multiplication.hpp"

#include "dispatcher/system/files.hpp"
#include "kernels/loader/plugin.hpp"
#include "kernels/programs/formats.hpp"
#include "tests/hip_target/device_probe.hpp"
#include "tests/hip_target/instructions/probe_args.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>

namespace fmha::hip_target::test {
namespace {

ElementType type_of(const InstructionInfo& info, MatrixUnit unit) {
    if (unit != MatrixUnit::cdna3) return info.operand;
    if (info.operand == ElementType::fp8_ocp) return ElementType::fp8_fnuz;
    if (info.operand == ElementType::bf8_ocp) return ElementType::bf8_fnuz;
    return info.operand;
}

} // namespace

std::vector<MatrixInstruction> instructions_of(std::string_view arch) {
    std::vector<MatrixInstruction> names;
    for (int i = 1; i < matrix_instructions; ++i)
        if (const auto name = static_cast<MatrixInstruction>(i); has_instruction(matrix_unit(arch), name))
            names.push_back(name);
    return names;
}

std::string probe_symbol(MatrixInstruction name) {
    return fmt::format("multiply_{}", to_string(name));
}

ProbeList::ProbeList(std::string_view arch) {
    std::string lines;
    for (const MatrixInstruction name : instructions_of(arch))
        lines += fmt::format("PROBE({})\n", to_string(name));
    system::write_file(folder_.path() / "probes.h", lines);
}

Operands::Operands(const InstructionInfo& info, MatrixUnit unit) : info_(info), type_(type_of(info, unit)) {}

int Operands::words(int elements) const {
    return elements * element_bits(type_) / 32 + (info_.scale_block != 0 ? 1 : 0);
}

Registers Operands::draw(std::mt19937& random, const Draw& values) const {
    const int bits = element_bits(type_), per_word = 32 / bits;
    const auto fill = [&](std::vector<std::uint32_t>& into, int elements, auto code_of) {
        for (int e = 0; e < elements; ++e) {
            std::uint32_t& code = code_of(e);
            if (code == 0) code = kernels::encode(values.operand(random), type_);
            if (e % per_word == 0) into.push_back(0);
            into.back() |= code << static_cast<unsigned>(e % per_word * bits);
        }
        if (info_.scale_block != 0)
            into.push_back(static_cast<std::uint32_t>(std::uniform_int_distribution(126, 128)(random)));
    };
    std::map<std::pair<int, int>, std::uint32_t> a, b; // one code an element, for all of its lanes
    Registers out;
    for (int lane = 0; lane < info_.wave_size; ++lane) {
        fill(out.a, info_.a_elements, [&](int e) -> std::uint32_t& {
            return a[{info_.a_row.at(lane, e), info_.a_k.at(lane, e)}];
        });
        fill(out.b, info_.b_elements, [&](int e) -> std::uint32_t& {
            return b[{info_.b_k.at(lane, e), info_.b_col.at(lane, e)}];
        });
        for (int r = 0; r < info_.c_elements; ++r) out.c.push_back(values.accumulator(random));
    }
    return out;
}

Registers Operands::draw_whole(std::mt19937& random) const {
    const float unit = element_bits(type_) == 4 ? 0.5F : 1.0F;
    const auto operand = [unit](std::mt19937& generator) {
        const int whole = std::uniform_int_distribution(1, 4)(generator);
        const bool negative = std::uniform_int_distribution(0, 1)(generator) == 1;
        return unit * static_cast<float>(negative ? -whole : whole);
    };
    const auto accumulator = [](std::mt19937& generator) {
        return static_cast<float>(std::uniform_int_distribution(-100, 100)(generator));
    };
    return draw(random, {operand, accumulator});
}

std::vector<float> Operands::product(const Registers& registers, const MatrixModel& model) const {
    std::vector<float> c = registers.c;
    model.multiply({c.data(), info_.c_elements}, {registers.a.data(), words(info_.a_elements)},
                   {registers.b.data(), words(info_.b_elements)});
    return c;
}

double Operands::value_of(const std::vector<std::uint32_t>& registers, int elements, int lane,
                          int element) const {
    const int bits = element_bits(type_), per_word = 32 / bits;
    const auto place = static_cast<std::size_t>(lane * words(elements) + element / per_word);
    const std::uint32_t word = registers[place];
    if (bits == 32) return static_cast<double>(std::bit_cast<float>(word));
    const std::uint32_t code = word >> static_cast<unsigned>(element % per_word * bits);
    return static_cast<double>(
        kernels::decode(code & ((1U << static_cast<unsigned>(bits)) - 1U), kernels::format_of(type_)));
}

std::vector<std::vector<double>> Operands::terms(const Registers& registers) const {
    const auto size = [](int rows, int cols) { return static_cast<std::size_t>(rows * cols); };
    std::vector<double> a(size(info_.m, info_.k)), b(size(info_.n, info_.k));
    const int block = info_.scale_block != 0 ? info_.scale_block : info_.k;
    std::vector<double> a_scale(size(info_.m, info_.k / block), 1.0),
        b_scale(size(info_.n, info_.k / block), 1.0);
    for (int lane = 0; lane < info_.wave_size; ++lane) {
        for (int e = 0; e < info_.a_elements; ++e)
            a[size(info_.a_row.at(lane, e), info_.k) + size(info_.a_k.at(lane, e), 1)] =
                value_of(registers.a, info_.a_elements, lane, e);
        for (int e = 0; e < info_.b_elements; ++e)
            b[size(info_.b_col.at(lane, e), info_.k) + size(info_.b_k.at(lane, e), 1)] =
                value_of(registers.b, info_.b_elements, lane, e);
        if (info_.scale_block == 0) continue;
        const auto scale = [&](const std::vector<std::uint32_t>& from, int elements) {
            const auto last = static_cast<std::size_t>((lane + 1) * words(elements) - 1);
            return std::ldexp(1.0, static_cast<int>(from[last] & 0xFFU) - 127);
        };
        const auto put = [&](std::vector<double>& into, const ScaleMap& map, double value) {
            into[size(map.outer.of_lane(lane), info_.k / block) + size(map.k.of_lane(lane) / block, 1)] =
                value;
        };
        put(a_scale, info_.a_scale, scale(registers.a, info_.a_elements));
        put(b_scale, info_.b_scale, scale(registers.b, info_.b_elements));
    }
    std::vector<std::vector<double>> sums;
    for (int lane = 0; lane < info_.wave_size; ++lane)
        for (int r = 0; r < info_.c_elements; ++r) {
            const int row = info_.c_row.at(lane, r), col = info_.c_col.at(lane, r);
            std::vector<double>& sum = sums.emplace_back();
            sum.push_back(static_cast<double>(registers.c[sums.size() - 1]));
            for (int k = 0; k < info_.k; ++k)
                sum.push_back(a[size(row, info_.k) + size(k, 1)] * b[size(col, info_.k) + size(k, 1)] *
                              a_scale[size(row, info_.k / block) + size(k / block, 1)] *
                              b_scale[size(col, info_.k / block) + size(k / block, 1)]);
        }
    return sums;
}

std::vector<float> on_device(const loader::Device& device, const loader::Module& module,
                             const InstructionInfo& info, const Registers& registers) {
    const loader::DeviceStream stream(device);
    const auto bytes = [](const auto& values) { return values.size() * sizeof(values[0]); };
    loader::DeviceBuffer a(device, bytes(registers.a)), b(device, bytes(registers.b)),
        c(device, bytes(registers.c));
    a.upload(stream, registers.a.data(), a.bytes());
    b.upload(stream, registers.b.data(), b.bytes());
    c.upload(stream, registers.c.data(), c.bytes());
    MultiplyArgs args{reinterpret_cast<const std::uint32_t*>(a.data()),
                      reinterpret_cast<const std::uint32_t*>(b.data()), reinterpret_cast<float*>(c.data())};
    module.function(probe_symbol(info.instruction))
        .launch({.blocks = 1, .threads = static_cast<std::uint32_t>(info.wave_size)}, &args, stream.handle());
    std::vector<float> result(registers.c.size());
    c.download(stream, result.data(), c.bytes());
    stream.synchronise();
    return result;
}

DeviceWithProbe open_device() {
    DeviceWithProbe out;
    try {
        out.device.emplace(loader::open_runtime(loader::plugin_folders()), 0);
    } catch (const DeviceError& error) {
        out.why_none = error.what();
        return out;
    }
    const std::string& arch = out.device->properties().arch;
    const auto image = probe_for_device("instructions", probe_source, arch, ProbeList(arch).folder());
    if (image)
        out.module.emplace(*out.device, *image, "the probe");
    else
        out.why_none = fmt::format("{}: no compiler for {}", out.device->text(), arch);
    return out;
}

} // namespace fmha::hip_target::test
