#include "kernels/targets/hip/ws_maps.hpp"

#include "dispatcher/types/shared_memory.hpp"
#include "kernels/targets/hip/ws_plan.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace fmha::hip_target {
namespace {

/// The last place that coordinates count.
constexpr std::int64_t most_places = std::numeric_limits<std::int32_t>::max() - 1;

/// `entries` are pages where rows lie in pages, and none where sequences are packed.
struct Tensor {
    std::string_view name;
    const TensorView& view;
    std::int64_t entries, heads, rows, channels;
    bool ragged; ///< sequences may end before their slots do
    bool by_column = false;
    kernels::HeadRows of_heads{}; ///< of a tile
};

constexpr std::int64_t beyond_addresses = std::int64_t{1} << 62;

/// A stride in bytes, for longer ones ±2^62: no map has one as long.
std::int64_t in_bytes(std::int64_t elements, std::int64_t element_bytes) {
    const std::int64_t most = beyond_addresses / std::max<std::int64_t>(1, element_bytes);
    return std::clamp(elements, -most, most) * element_bytes;
}

/// Steps from the first to the last of `extent`; more than any map counts when they are too many.
std::int64_t steps_to_last(std::int64_t extent, std::int64_t each) {
    std::int64_t steps = 0;
    const bool fits = !__builtin_mul_overflow(std::max<std::int64_t>(extent - 1, 0), each, &steps);
    return fits ? std::min(steps, most_places + 1) : most_places + 1;
}

/// Dimension 2 of a map that ends with sequences: the common divisor of the strides of entries and heads, in bytes.
std::optional<Unmappable> count_places(const Tensor& tensor, std::int64_t& stride, MapRows& rows) {
    const TensorView& view = tensor.view;
    const std::int64_t bytes = element_bits(view.type) / 8;
    const std::int64_t of_entry = tensor.entries > 1 ? in_bytes(view.batch_stride, bytes) : 0,
                       of_head = tensor.heads > 1 ? in_bytes(view.head_stride, bytes) : 0;
    for (const std::int64_t given : {of_entry, of_head})
        if (given < 0 || given >= beyond_addresses)
            return Unmappable{MapProblem::stride_range, tensor.name, given};
    stride = std::gcd(of_entry, of_head);
    if (stride == 0) stride = 16;
    const std::int64_t entry = of_entry / stride, head = of_head / stride;
    if (steps_to_last(tensor.entries, entry) + steps_to_last(tensor.heads, head) > most_places)
        return Unmappable{MapProblem::places, tensor.name, stride};
    rows.of_entry = static_cast<std::int32_t>(entry);
    rows.of_head = static_cast<std::int32_t>(head);
    return std::nullopt;
}

/// Fills in one map. A dimension of one element has a stride that every driver takes.
std::optional<Unmappable> map(const Tensor& tensor, const StreamPlan& stream, TensorMapSpec& spec,
                              MapRows& rows) {
    const auto& [name, view, entries, heads, row_count, channels, ragged, by_column, of_heads] = tensor;
    // A map that ends with sequences counts the common divisor of the strides, one of which may be 0.
    const bool ends_with_sequence = ragged || shares_memory(view, entries, heads);
    const std::int64_t bytes = element_bits(view.type) / 8;
    const auto stride = [&](std::int64_t extent, std::int64_t elements) {
        return extent > 1 ? in_bytes(elements, bytes) : 16;
    };
    spec.base = view.data;
    spec.type = view.type;
    spec.box = {SwizzledTile::block_elements(view.type),
                static_cast<std::int32_t>(of_heads.of_head(stream.box_lines)),
                static_cast<std::int32_t>(of_heads.heads(stream.box_lines)), 1, 1};
    if (stream.interleaved) spec.steps[1] = 2;
    rows.ends_with_sequence = ends_with_sequence;
    if (by_column) {
        // A clipped line ends at a byte, and the strides that move an address back are whole units.
        if (ends_with_sequence) return Unmappable{MapProblem::ends_in_line, name};
        spec.extents = {row_count, channels, heads, entries, 1};
        spec.strides = {in_bytes(view.row_stride, bytes), stride(channels, view.col_stride),
                        stride(heads, view.head_stride), stride(entries, view.batch_stride), 16};
    } else if (ends_with_sequence) {
        constexpr std::int64_t beyond = std::numeric_limits<std::int32_t>::max();
        const std::int64_t line = in_bytes(view.row_stride, bytes);
        std::int64_t of_place = 0;
        if (auto problem = count_places(tensor, of_place, rows)) return problem;
        spec.extents = {channels, MapRows::end, beyond, beyond, beyond};
        spec.strides = {in_bytes(view.col_stride, bytes), line, of_place, line,
                        (std::int64_t{1} << 34) - line};
    } else {
        spec.extents = {channels, row_count, heads, entries, 1};
        spec.strides = {in_bytes(view.col_stride, bytes), stride(row_count, view.row_stride),
                        stride(heads, view.head_stride), stride(entries, view.batch_stride), 16};
    }
    return cannot_map(name, spec);
}

/// The tensor of the queries: rows behind a sequence's last change no other row and are not stored, but have to be memory of it.
template <class Args>
Tensor queries_of(const KernelConfig& config, const Args& args) {
    const Shape& shape = args.shape;
    const bool group = shape.mode == Mode::group;
    return {"q",
            args.q,
            group ? 0 : shape.batch,
            shape.nhead_q,
            group ? 0 : shape.seqlen_q,
            shape.hdim_q,
            group,
            false,
            kernels::HeadRows::of(config, args)};
}

WsMaps maps_of(const KernelConfig& config, const Shape& shape, const Tensor& q, const Tensor& k,
               const Tensor& v) {
    const WsPlan plan = ws_plan_of(config);
    const std::array<const Tensor*, WsLaunch::maps_of_launch> tensors{&q, &k, &v};
    const std::array<const StreamPlan*, WsLaunch::maps_of_launch> streams{&plan.queries, &plan.keys,
                                                                          &plan.copied_values()};
    WsMaps maps;
    for (std::size_t i = 0; i < tensors.size() && !maps.problem; ++i) {
        const Tensor& tensor = *tensors[i];
        const bool has_rows = shape.batch > 0 && (tensor.entries == 0 || tensor.rows > 0);
        if (tensor.view.present() && has_rows)
            maps.problem = map(tensor, *streams[i], maps.specs[i], maps.rows[i]);
    }
    return maps;
}

/// Of keys in pages: a page is an entry.
template <class Args>
WsMaps maps_of_pools(const KernelConfig& config, const Args& args) {
    const Shape& shape = args.shape;
    const auto pool = [&](std::string_view name, const TensorView& view, std::int64_t channels) {
        return Tensor{name, view, args.place.page_count, shape.nhead_k, args.place.page_size, channels, true};
    };
    return maps_of(config, shape, queries_of(config, args), pool("k", args.k, shape.hdim_q),
                   pool("v", args.v, shape.hdim_v));
}

} // namespace

WsMaps ws_maps_of(const KernelConfig& config, const FwdArgs& args) {
    const Shape& shape = args.shape;
    const LengthArrays& lengths = args.lengths;
    const bool group = shape.mode == Mode::group;
    const bool ragged = group || lengths.seqlen_k != nullptr || lengths.cu_seqlen_k != nullptr;
    const auto keys = [&](std::string_view name, const TensorView& view, std::int64_t channels,
                          bool by_column) {
        return Tensor{
            name,   view,     group ? 0 : shape.batch, shape.nhead_k, group ? 0 : shape.seqlen_k, channels,
            ragged, by_column};
    };
    return maps_of(config, shape, queries_of(config, args), keys("k", args.k, shape.hdim_q, false),
                   keys("v", args.v, shape.hdim_v, config.signature.v_layout == VLayout::column));
}

WsMaps ws_maps_of(const KernelConfig& config, const PagedKvArgs& args) {
    return maps_of_pools(config, args);
}

WsMaps ws_maps_of(const KernelConfig& config, const BatchPrefillArgs& args) {
    return maps_of_pools(config, args);
}

} // namespace fmha::hip_target
