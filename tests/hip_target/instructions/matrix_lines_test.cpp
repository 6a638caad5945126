// Matrix reads and writes of LDS (ldmatrix, also transposed, and stmatrix) with which kernels of e4m3 transpose tiles: the emulated machine's
// against PTX's words for them, a device's against the emulated machine's, of random bytes in lines of random order.

#include "kernels/loader/code_object.hpp"
#include "kernels/loader/device.hpp"
#include "kernels/loader/plugin.hpp"
#include "kernels/targets/hip/emulated/team_machine.hpp"
#include "tests/hip_target/device_probe.hpp"
#include "tests/hip_target/instructions/matrix_probe_args.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace fmha::hip_target::test {
namespace {

constexpr const char* lines_source = "tests/hip_target/instructions/matrix_probe.hip";
using Args = MatrixLinesArgs;

struct Lines {
    explicit Lines(std::mt19937& random, bool is_transposed)
        : transposed(is_transposed), image(Args::lds_bytes / 4), reads(Args::threads), writes(Args::threads) {
        for (std::uint32_t& word : image) word = static_cast<std::uint32_t>(random());
        for (auto* order : {&reads, &writes}) {
            std::iota(order->begin(), order->end(), 0);
            std::ranges::shuffle(*order, random);
        }
    }
    bool transposed;
    std::vector<std::uint32_t> image;
    std::vector<std::int32_t> reads, writes;
};

struct Outcome {
    std::vector<std::uint32_t> registers, lds;
    bool operator==(const Outcome&) const = default;
};

Outcome emulated(const Lines& lines) {
    const WsMaps maps;
    TeamBlock block(Args::lds_bytes, 1, Args::threads, Schedule::in_turn, 0);
    Outcome out{{}, lines.image};
    block.run([&](int agent) {
        EmulatedTeamMachine machine(block, MatrixUnit::nvidia, maps, agent);
        const auto place = [](int line) { return line * Args::line_bytes; };
        for (int line = 0; line < 2 * Args::threads; ++line)
            block.write(agent, place(line), lines.image.data() + place(line) / 4);
        EmulatedRegisters<std::uint32_t> words(Args::threads, Args::words);
        const auto at = [](const std::vector<std::int32_t>& order, int thread) {
            return order[static_cast<std::size_t>(thread)];
        };
        machine.load_matrix(
            words, 0, [&](int thread) { return place(at(lines.reads, thread)); }, lines.transposed);
        machine.store_matrix(words, 0,
                             [&](int thread) { return place(Args::threads + at(lines.writes, thread)); });
        for (int thread = 0; thread < Args::threads; ++thread)
            for (int w = 0; w < Args::words; ++w) out.registers.push_back(words.at(thread, w));
        for (int line = 0; line < 2 * Args::threads; ++line)
            block.read(agent, place(line), out.lds.data() + place(line) / 4);
    });
    return out;
}

/// Element `column` of the line that thread `of` names.
std::uint32_t element(const Lines& lines, int of, int column) {
    const int line = lines.reads[static_cast<std::size_t>(of)];
    const std::uint32_t word = lines.image[static_cast<std::size_t>(line * 4 + column / 2)];
    return column % 2 == 0 ? word & 0xFFFFU : word >> 16U;
}

// PTX ISA, ldmatrix and stmatrix: threads 8j … 8j + 7 of a warp name the rows of matrix j; a thread has elements 2 · (t % 4) and the next one
// of row t / 4, of its transpose with .trans.
TEST(MatrixLines, OfTheEmulatedMachineAreThoseOfPtx) {
    std::mt19937 random(5); // NOLINT(cert-msc51-cpp): the same in every run
    for (const bool transposed : {false, true}) {
        const Lines lines(random, transposed);
        const Outcome got = emulated(lines);
        for (int thread = 0; thread < Args::threads; ++thread) {
            const int lane = thread % 32, warp = thread - lane, row = lane / 4, column = 2 * (lane % 4);
            for (int j = 0; j < Args::words; ++j) {
                const int matrix = warp + 8 * j;
                const std::uint32_t expected = transposed
                                                   ? element(lines, matrix + column, row) |
                                                         element(lines, matrix + column + 1, row) << 16U
                                                   : element(lines, matrix + row, column) |
                                                         element(lines, matrix + row, column + 1) << 16U;
                const auto word = static_cast<std::size_t>(thread * Args::words + j);
                ASSERT_EQ(got.registers[word], expected) << thread << ' ' << j;
                const int line = Args::threads + lines.writes[static_cast<std::size_t>(matrix + row)];
                ASSERT_EQ(got.lds[static_cast<std::size_t>(4 * line + lane % 4)], expected)
                    << thread << ' ' << j;
            }
        }
    }
}

TEST(MatrixLines, CompileForHopper) {
    const std::optional<std::string> image = compiled_probe(lines_source, "sm_90");
    if (!image) GTEST_SKIP() << "no compiler for sm_90";
    EXPECT_NO_THROW(loader::check_code_object(*image, "sm_90", "the probe"));
    keep_object("matrix_lines", "sm_90", *image);
}

TEST(MatrixLines, OfTheDeviceAreThoseOfTheModel) {
    std::optional<loader::Device> device;
    try {
        device.emplace(loader::open_runtime(loader::plugin_folders()), 0);
    } catch (const DeviceError& error) {
        GTEST_SKIP() << error.what();
    }
    if (device->properties().arch != "sm_90") GTEST_SKIP() << device->text() << " has no such instructions";
    const auto image = probe_for_device("matrix_lines", lines_source, "sm_90");
    if (!image) GTEST_SKIP() << "no compiler for sm_90";
    const loader::Module module(*device, *image, "the probe");
    std::mt19937 random(6); // NOLINT(cert-msc51-cpp)
    for (int n = 0; n < 32; ++n) {
        const Lines lines(random, n % 2 == 1);
        const loader::DeviceStream stream(*device);
        const auto bytes = [](const auto& values) { return values.size() * sizeof(values[0]); };
        Outcome got{std::vector<std::uint32_t>(Args::threads * Args::words),
                    std::vector<std::uint32_t>(lines.image.size())};
        loader::DeviceBuffer before(*device, bytes(lines.image)), reads(*device, bytes(lines.reads)),
            writes(*device, bytes(lines.writes)), registers(*device, bytes(got.registers)),
            after(*device, bytes(got.lds));
        before.upload(stream, lines.image.data(), before.bytes());
        reads.upload(stream, lines.reads.data(), reads.bytes());
        writes.upload(stream, lines.writes.data(), writes.bytes());
        Args args{};
        args.image = reinterpret_cast<const std::uint32_t*>(before.data());
        args.reads = reinterpret_cast<const std::int32_t*>(reads.data());
        args.writes = reinterpret_cast<const std::int32_t*>(writes.data());
        args.registers = reinterpret_cast<std::uint32_t*>(registers.data());
        args.result = reinterpret_cast<std::uint32_t*>(after.data());
        args.transposed = lines.transposed ? 1 : 0;
        module.function("read_and_write", Args::lds_bytes)
            .launch({.blocks = 1, .threads = Args::threads, .dynamic_lds = Args::lds_bytes}, &args,
                    stream.handle());
        registers.download(stream, got.registers.data(), registers.bytes());
        after.download(stream, got.lds.data(), after.bytes());
        stream.synchronise();
        ASSERT_EQ(got, emulated(lines)) << n;
    }
}

} // namespace
} // namespace fmha::hip_target::test
