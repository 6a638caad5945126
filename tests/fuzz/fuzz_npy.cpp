// libFuzzer target over .npy files. Arrays that were read are written again and must read as the same.
#include "dispatcher/types/error.hpp"
#include "harness/npy/npy.hpp"
#include "tests/fuzz/require.hpp"

#include <sstream>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::istringstream given(std::string(reinterpret_cast<const char*>(data), size));
    try {
        const auto array = fmha::harness::read_npy(given, "input");
        std::stringstream written;
        fmha::harness::write_npy(written, array);
        const auto again = fmha::harness::read_npy(written, "again");
        fmha::fuzz::require(again.type == array.type && again.shape == array.shape &&
                                again.bytes == array.bytes,
                            "the array is another one after it was written");
    } catch (const fmha::Error&) {
        // Refused with a sentence.
    }
    return 0;
}
