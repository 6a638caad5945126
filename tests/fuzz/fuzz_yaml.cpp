// libFuzzer target over upstream's shape matrices, of which the name of a shape must give that shape again, and over waiver files.
#include "dispatcher/types/error.hpp"
#include "harness/cases/case_fields.hpp"
#include "harness/cases/load.hpp"
#include "harness/cases/shape_matrix.hpp"
#include "harness/cases/waiver.hpp"
#include "tests/fuzz/memory_file.hpp"
#include "tests/fuzz/require.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace {

namespace harness = fmha::harness;

constexpr std::size_t looked_at = 8;

void read_again(const harness::Case& shape) {
    const auto again = harness::load_case(shape.id, ".");
    fmha::fuzz::require(again.id == shape.id, shape.id + " is read as " + again.id);
    for (const auto& field : harness::case_fields())
        fmha::fuzz::require(field.compound() || field.print(again) == field.print(shape),
                            shape.id + " has another " + std::string(field.name));
}

void read_as_waivers(const std::string& text) {
    static const std::vector<std::string> archs{"gfx942", "gfx950"}, targets{"host", "hip"};
    try {
        for (const auto& waiver : harness::read_waivers(text, "known.yaml", archs, targets))
            fmha::fuzz::require(!waiver.cases.empty() && !waiver.tracker.empty() && !waiver.reason.empty(),
                                waiver.place + " lacks a member");
    } catch (const fmha::Error&) {
        // Refused with a sentence.
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const fmha::fuzz::MemoryFile file(".yaml");
    static const harness::KernelDims dims{{fmha::DataType::fp16, {{64, 64}, {128, 128}}}};
    read_as_waivers(std::string(reinterpret_cast<const char*>(data), size));
    file.hold(data, size);
    try {
        static_cast<void>(harness::count_shapes(file.path(), harness::Tier::nightly));
        for (const auto family : {fmha::ApiFamily::fwd, fmha::ApiFamily::bwd}) {
            const auto shapes = harness::load_shape_matrix(file.path(), harness::Tier::nightly, dims, family);
            for (std::size_t i = 0; i < std::min(shapes.size(), looked_at); ++i) read_again(shapes[i]);
        }
    } catch (const fmha::Error&) {
        // Refused with a sentence.
    }
    return 0;
}
