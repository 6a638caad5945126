// libFuzzer target over .npy files. What is read is written again and must read as the same.
#include "dispatcher/types/error.hpp"
#include "harness/npy/npy.hpp"
#include "tests/fuzz/memory_file.hpp"
#include "tests/fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const fmha::fuzz::MemoryFile given(".npy"), written(".written.npy");
    given.hold(data, size);
    try {
        const auto array = fmha::harness::read_npy(given.path());
        fmha::harness::write_npy(written.path(), array);
        const auto again = fmha::harness::read_npy(written.path());
        fmha::fuzz::require(again.type == array.type && again.shape == array.shape &&
                                again.bytes == array.bytes,
                            "the array is another one after it was written");
    } catch (const fmha::Error&) {
        // Refused with a sentence.
    }
    return 0;
}
