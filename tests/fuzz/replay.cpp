// Gives the fuzzers' readers every seed in a folder, and an input of each first byte alone. It needs neither libFuzzer nor clang, so that each test
// run sees a seed that is refused where it ought to be read.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "replay: the folder of the seeds is the only argument\n";
        return 2;
    }
    for (unsigned first = 0; first < 256; ++first) {
        const auto byte = static_cast<std::uint8_t>(first);
        LLVMFuzzerTestOneInput(&byte, 1);
    }
    std::size_t seeds = 0;
    for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
        std::cerr << entry.path().filename().string() << std::endl; // stands there when the process ends
        std::ifstream file(entry.path(), std::ios::binary);
        const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
        LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
        ++seeds;
    }
    std::cout << seeds << " seeds\n";
    return seeds > 0 ? 0 : 1;
}
