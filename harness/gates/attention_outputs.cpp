#include "harness/gates/attention_outputs.hpp"

#include "harness/data/storage.hpp"
#include "reference/attention.hpp"
#include "reference/visibility.hpp"

#include <utility>

namespace fmha::harness {

Outputs attention_outputs(const reference::AttentionArgs& args) {
    return attention_outputs(args, reference::all_rows(args));
}

Outputs attention_outputs(const reference::AttentionArgs& args, std::vector<reference::RowId> wanted) {
    const auto rows = std::make_shared<const OutputRows>(Axis::query, std::move(wanted));
    Outputs outputs;
    const auto copy = [&](std::string name, const TensorView& view, Axis columns, auto append) {
        Outputs::Tensor& tensor = outputs.add(std::move(name), view.type, rows, columns);
        for (const auto& id : rows->ids()) {
            const std::int64_t start = args.shape.mode == Mode::group ? args.lengths.seqstart_q[id.b] : 0;
            append(tensor, id, [&view, &id, stored = start + id.i](std::int64_t c) {
                return load_code(view.data, view.type, view.offset(id.b, id.h, stored, c));
            });
        }
    };
    copy("o", args.o, Axis::v_channel,
         [&](auto& tensor, const auto&, auto code) { tensor.append_row(args.shape.hdim_v, code); });
    if (args.lse.present())
        copy("lse", args.lse, Axis::none,
             [](auto& tensor, const auto&, auto code) { tensor.append_row(1, code); });
    if (args.randval.present())
        copy("randval", args.randval, Axis::key, [&](auto& tensor, const auto& id, auto code) {
            const reference::KeyRanges seen = reference::key_ranges(args, id);
            tensor.append_row(reference::entry_lengths(args, id.b).seqlen_k,
                              [&](std::int64_t j) { return seen.contain(j) ? code(j) : 0U; });
        });
    return outputs;
}

} // namespace fmha::harness
