#pragma once

#include "harness/npy/npy.hpp"
#include "tests/harness/command_support.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

/// Files of a case that other programs bring.
namespace fmha::cli::test {

/// `bytes` of element `index` of a file.
inline void put(const std::string& file, std::int64_t index, std::uint32_t bits) {
    harness::NpyArray array = harness::read_npy(file);
    const auto bytes = static_cast<std::size_t>(harness::npy_bytes(array.type));
    std::memcpy(array.bytes.data() + bytes * static_cast<std::size_t>(index), &bits, bytes);
    harness::write_npy(file, array);
}

/// A case whose reference is written to a folder, where it stands for a kernel that writes into the folder of its inputs. One at a time.
class Exchanged {
  public:
    explicit Exchanged(std::string name) : case_(std::move(name)) {
        const Ran wrote = with("reference", {"--out", tensors()});
        EXPECT_EQ(wrote.code, 0) << wrote.err;
    }
    std::string tensors() const { return folder_ / "given"; }
    std::string file(const std::string& name) const { return tensors() + "/" + name + ".npy"; }
    Ran check(std::vector<std::string> more = {}) const {
        more.insert(more.end(), {"--tensors", tensors()});
        return with("check", more);
    }
    /// The outputs get the types that a kernel writes.
    void round(const std::vector<std::string>& halves) const {
        for (const std::string& name : halves) round_to(harness::NpyType::float16, file(name));
        if (std::filesystem::exists(file("lse"))) round_to(harness::NpyType::float32, file("lse"));
    }

  private:
    Ran with(const std::string& command, const std::vector<std::string>& more) const {
        std::vector<std::string> line{command, "--case", case_, "--cases-root", FMHA_CASES_DIR};
        line.insert(line.end(), more.begin(), more.end());
        return run(line);
    }

    Scratch folder_;
    std::string case_;
};

template <class Number>
std::vector<Number> numbers_of(const std::string& file) {
    const harness::NpyArray array = harness::read_npy(file);
    std::vector<Number> numbers(array.bytes.size() / sizeof(Number));
    std::memcpy(numbers.data(), array.bytes.data(), array.bytes.size());
    return numbers;
}

template <class Number>
void put_numbers(const std::string& file, const std::vector<Number>& numbers) {
    harness::NpyArray array = harness::read_npy(file);
    ASSERT_EQ(array.bytes.size(), numbers.size() * sizeof(Number));
    std::memcpy(array.bytes.data(), numbers.data(), array.bytes.size());
    harness::write_npy(file, array);
}

} // namespace fmha::cli::test
