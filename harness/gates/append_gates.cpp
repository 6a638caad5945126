#include "harness/gates/append_gates.hpp"

#include "dispatcher/types/error.hpp"

#include "reference/numerics/formats.hpp"

#include <array>
#include <fmt/format.h>
#include <memory>

namespace fmha::harness {
namespace {

using reference::AppendedRow;
using reference::AppendTarget;
using reference::RowId;

struct CacheRow {
    std::int64_t slot = 0, row = 0;
};
CacheRow cache_row(const AppendKvArgs& args, const RowId& id) {
    const KvPlace& place = args.place;
    const std::int64_t position = args.lengths.seqlen_k[id.b] + id.i;
    if (place.page_size > 0)
        return {place.block_table[id.b * place.block_table_stride + position / place.page_size],
                position % place.page_size};
    return {place.cache_batch_idx != nullptr ? place.cache_batch_idx[id.b] : id.b, position};
}

std::vector<RowId> ids_of(std::int64_t batch, std::int64_t heads, std::int64_t rows) {
    std::vector<RowId> ids;
    for (std::int64_t b = 0; b < batch; ++b)
        for (std::int64_t h = 0; h < heads; ++h)
            for (std::int64_t i = 0; i < rows; ++i) ids.push_back({b, h, i});
    return ids;
}

RowSpace row_space(Axis axis, const AppendKvArgs& args, std::int64_t heads, std::int64_t length) {
    const std::int64_t rows = args.shape.batch * heads * length;
    return {.axis = axis,
            .batch = args.shape.batch,
            .heads = heads,
            .checked_rows = rows,
            .all_rows = rows,
            .facts = [length](const RowId&) { return RowSpace::Facts{.length = length}; }};
}

constexpr std::array names{"k", "v", "q"}; // by AppendTarget

/// Q whole: channels that are not rotated keep their bits (V-4).
void add_queries(const AppendKvArgs& args, Outputs& outputs) {
    if (!args.q.present()) return;
    const Shape& shape = args.shape;
    const auto rows =
        std::make_shared<const OutputRows>(Axis::query, ids_of(shape.batch, shape.nhead_q, shape.seqlen_q));
    Outputs::Tensor& q = outputs.add("q", args.q.type, rows, Axis::qk_channel);
    for (const RowId& id : rows->ids())
        q.append_row(shape.hdim_q, [&](std::int64_t c) {
            return load_code(args.q.data, args.q.type, args.q.offset(id.b, id.h, id.i, c));
        });
}

/// The channels of Q that are not rotated.
void judge_kept_queries(const AppendKvArgs& args, const Outputs::Tensor& q, const Outputs::Tensor& before,
                        ExactGate& gate, Findings& findings) {
    for (std::int64_t row = 0; row < q.rows().size(); ++row)
        for (std::int64_t c = first_kept_channel(args); c < q.columns(row); ++c) {
            const std::uint32_t got = q.code(row, c), want = before.code(row, c);
            if (got == want) continue;
            findings.wrong(q, q.rows().id(row), c);
            gate.fail(fmt::format("{} column {}: got {:#x}, not {:#x}, the bits that Q has there",
                                  q.rows().place(q.rows().id(row)), c, got, want));
        }
}

} // namespace

Outputs appended_outputs(const AppendKvArgs& args) {
    const Shape& shape = args.shape;
    const auto keys =
        std::make_shared<const OutputRows>(Axis::key, ids_of(shape.batch, shape.nhead_k, args.seqlen_knew));
    Outputs outputs;
    const auto copy = [&](const char* name, const TensorView& view, Axis axis, std::int64_t columns) {
        Outputs::Tensor& tensor = outputs.add(name, view.type, keys, axis);
        for (const RowId& id : keys->ids()) {
            const CacheRow at = cache_row(args, id);
            tensor.append_row(columns, [&](std::int64_t c) {
                return load_code(view.data, view.type, view.offset(at.slot, id.h, at.row, c));
            });
        }
    };
    copy("k", args.k, Axis::qk_channel, shape.hdim_q);
    copy("v", args.v, Axis::v_channel, shape.hdim_v);
    add_queries(args, outputs);
    return outputs;
}

Outputs queries_of(const AppendKvArgs& args) {
    Outputs outputs;
    add_queries(args, outputs);
    return outputs;
}

Judgement judge_appended(const AppendKvArgs& args, const Outputs& outputs,
                         const reference::AppendedRows& expected, const Outputs& before) {
    Judgement judgement;
    Findings findings({row_space(Axis::key, args, args.shape.nhead_k, args.seqlen_knew),
                       row_space(Axis::query, args, args.shape.nhead_q, args.shape.seqlen_q)});
    std::vector<ExactGate> gates;
    for (const char* const name : names) gates.emplace_back("G5.4", name);
    for (const AppendedRow& row : expected.rows) {
        const auto target = static_cast<std::size_t>(row.target);
        const Outputs::Tensor& tensor = outputs.at(names[target]);
        const RowId id{row.b, row.h, row.i};
        const std::int64_t index = tensor.rows().index(id);
        const bool whole = row.target != AppendTarget::q;
        if (whole ? tensor.columns(index) != row.cols : tensor.columns(index) < row.cols)
            throw Error(fmt::format("{} has {} channels, the reference writes {}", tensor.rows().place(id),
                                    tensor.columns(index), row.cols));
        judgement.elements += row.cols;
        for (std::int64_t c = 0; c < row.cols; ++c) {
            const std::uint32_t got = tensor.code(index, c), want = expected.code_of(row, c);
            const bool rotated = c < row.rotated;
            const std::int64_t apart = rotated ? reference::values_apart(tensor.type(), got, want) : 0;
            if (rotated) {
                const double exact = expected.exact[static_cast<std::size_t>(row.first + c)];
                findings.element(tensor, id, c, tensor.value(index, c), exact,
                                 reference::spacing(tensor.type(), exact), static_cast<double>(apart));
            } else if (got != want) {
                findings.wrong(tensor, id, c);
            }
            if (rotated ? apart <= 1 : got == want) continue;
            gates[target].fail(fmt::format("{} column {}: got {:#x}, not {:#x}, {}", tensor.rows().place(id),
                                           c, got, want,
                                           rotated ? "the rounded exact number, or a neighbour of it"
                                                   : "the bits that were to be copied"));
        }
    }
    if (const Outputs::Tensor* q = outputs.find("q"))
        judge_kept_queries(args, *q, before.at("q"), gates.back(), findings);
    for (std::size_t n = 0; n < gates.size(); ++n)
        if (outputs.find(names[n]) != nullptr) judgement.gates.push_back(gates[n].verdict());
    judgement.worst = findings.worst();
    judgement.maps = findings.maps();
    judgement.pattern = findings.pattern();
    return judgement;
}

} // namespace fmha::harness
