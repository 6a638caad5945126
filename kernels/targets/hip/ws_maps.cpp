#include "kernels/targets/hip/ws_maps.hpp"

#include "kernels/targets/hip/ws_plan.hpp"

#include <limits>

namespace fmha::hip_target {
namespace {

struct Tensor {
    std::string_view name;
    const TensorView& view;
    std::int64_t heads, rows, channels;
    bool ends_with_sequence;
};

/// Fills in one map. A dimension of one element has a stride that every driver takes.
std::optional<Unmappable> map(const Tensor& tensor, const StreamPlan& stream, const Shape& shape,
                              TensorMapSpec& spec, MapRows& rows) {
    const auto& [name, view, heads, row_count, channels, ends_with_sequence] = tensor;
    const bool group = shape.mode == Mode::group;
    if (!view.present() || shape.batch == 0 || (!group && row_count == 0)) return std::nullopt;
    const std::int64_t bytes = element_bits(view.type) / 8;
    const auto stride = [&](std::int64_t extent, std::int64_t elements) {
        return extent > 1 ? elements * bytes : 16;
    };
    spec.base = view.data;
    spec.type = view.type;
    spec.box = {SwizzledTile::block_elements, stream.lines, 1, 1, 1};
    rows.ends_with_sequence = ends_with_sequence;
    if (ends_with_sequence) {
        constexpr std::int64_t end = MapRows::end, beyond = std::numeric_limits<std::int32_t>::max();
        const std::int64_t line = view.row_stride * bytes;
        if (shape.batch > 1 && view.batch_stride != 0) {
            if (view.row_stride <= 0 || view.batch_stride % view.row_stride != 0)
                return Unmappable{MapProblem::entry_rows, name, view.batch_stride};
            rows.of_entry = view.batch_stride / view.row_stride;
        }
        const std::int64_t all_rows = (shape.batch - 1) * rows.of_entry + row_count;
        if (rows.of_entry < 0 || all_rows > end) return Unmappable{MapProblem::rows, name, all_rows};
        spec.extents = {channels, end, heads, beyond, beyond};
        spec.strides = {view.col_stride * bytes, line, stride(heads, view.head_stride), line,
                        (std::int64_t{1} << 34) - line};
    } else {
        spec.extents = {channels, row_count, heads, shape.batch, 1};
        spec.strides = {view.col_stride * bytes, stride(row_count, view.row_stride),
                        stride(heads, view.head_stride), stride(shape.batch, view.batch_stride), 16};
    }
    return cannot_map(name, spec);
}

} // namespace

WsMaps ws_maps_of(const KernelConfig& config, const FwdArgs& args) {
    const WsPlan plan = ws_plan_of(config);
    const Shape& shape = args.shape;
    const LengthArrays& lengths = args.lengths;
    const bool group = shape.mode == Mode::group;
    const bool ragged_keys = group || lengths.seqlen_k != nullptr || lengths.cu_seqlen_k != nullptr;
    // Rows of queries behind a sequence's last change no other row and are not stored, but have to be memory of the tensor.
    const std::array<Tensor, WsLaunch::maps_of_launch> tensors{
        {{"q", args.q, shape.nhead_q, group ? 0 : shape.seqlen_q, shape.hdim_q, group},
         {"k", args.k, shape.nhead_k, group ? 0 : shape.seqlen_k, shape.hdim_q, ragged_keys},
         {"v", args.v, shape.nhead_k, group ? 0 : shape.seqlen_k, shape.hdim_v, ragged_keys}}};
    const std::array<const StreamPlan*, WsLaunch::maps_of_launch> streams{&plan.queries, &plan.keys,
                                                                          &plan.values};
    WsMaps maps;
    for (std::size_t i = 0; i < tensors.size() && !maps.problem; ++i)
        maps.problem = map(tensors[i], *streams[i], shape, maps.specs[i], maps.rows[i]);
    return maps;
}

} // namespace fmha::hip_target
