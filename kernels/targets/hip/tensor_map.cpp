#include "kernels/targets/hip/tensor_map.hpp"

#include <fmt/format.h>

namespace fmha::hip_target {
namespace {

constexpr int unit_bytes = 16;
constexpr std::int64_t most_stride = std::int64_t{1} << 40, most_extent = std::int64_t{1} << 32;
constexpr int most_box = 256, most_step = 8;

} // namespace

std::optional<Unmappable> cannot_map(std::string_view tensor, const TensorMapSpec& spec) {
    const auto refuse = [&](MapProblem problem, std::int64_t value) {
        return Unmappable{problem, tensor, value};
    };
    const int element_bytes = element_bits(spec.type) / 8;
    if (element_bytes != 1 && element_bytes != 2)
        return refuse(MapProblem::element_type, element_bits(spec.type));
    const auto address = reinterpret_cast<std::uintptr_t>(spec.base);
    if (address % unit_bytes != 0)
        return refuse(MapProblem::base_alignment, static_cast<std::int64_t>(address % unit_bytes));
    if (spec.strides[0] != element_bytes && spec.extents[0] > 1)
        return refuse(MapProblem::channel_stride, spec.strides[0]);
    for (std::size_t i = 0; i < map_rank; ++i) {
        if (spec.extents[i] < 1 || spec.extents[i] > most_extent)
            return refuse(MapProblem::extent, spec.extents[i]);
        if (spec.box[i] < 1 || spec.box[i] > most_box) return refuse(MapProblem::box, spec.box[i]);
        if (spec.steps[i] < 1 || spec.steps[i] > (i == 0 ? 1 : most_step))
            return refuse(MapProblem::box, spec.steps[i]);
        if (i == 0) continue;
        if (spec.strides[i] <= 0 || spec.strides[i] >= most_stride)
            return refuse(MapProblem::stride_range, spec.strides[i]);
        if (spec.strides[i] % unit_bytes != 0) return refuse(MapProblem::stride_alignment, spec.strides[i]);
    }
    if (spec.swizzle_bytes != 128 || spec.box[0] * element_bytes != spec.swizzle_bytes)
        return refuse(MapProblem::box, spec.box[0]);
    return std::nullopt;
}

std::string to_sentence(const Unmappable& unmappable) {
    const auto& [problem, tensor, value] = unmappable;
    switch (problem) {
    case MapProblem::element_type:
        return fmt::format("elements of {} have {} bits; tensor copies of this target take 8 or 16", tensor,
                           value);
    case MapProblem::base_alignment:
        return fmt::format("{}.data lies {} bytes behind a multiple of 16 bytes; tensor copies begin at one",
                           tensor, value);
    case MapProblem::channel_stride:
        return fmt::format("elements of a line of {} lie {} bytes apart; tensor copies take neighbours",
                           tensor, value);
    case MapProblem::stride_alignment:
        return fmt::format("{} has a stride of {} bytes; tensor copies take multiples of 16", tensor, value);
    case MapProblem::stride_range:
        return fmt::format("{} has a stride of {} bytes; tensor copies take 16 to 2^40 - 16", tensor, value);
    case MapProblem::extent:
        return fmt::format("{} has {} elements along a dimension; tensor copies take 1 to 2^32", tensor,
                           value);
    case MapProblem::box:
        return fmt::format("a tile of {} has {} elements along a dimension; a tensor copy takes at most 256, "
                           "at most every eighth of them, and lines of 128 bytes",
                           tensor, value);
    case MapProblem::ends_in_line:
        return fmt::format(
            "{} lies by column, and where its sequences end within a line is known to the device "
            "alone; tensor copies end lines where a tensor ends",
            tensor);
    case MapProblem::places:
        return fmt::format(
            "{} has more heads or entries, or pages, in steps of {} bytes than tensor copies count", tensor,
            value);
    }
    return {};
}

} // namespace fmha::hip_target
