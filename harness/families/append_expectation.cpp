#include "harness/families/append_expectation.hpp"

#include "harness/gates/append_gates.hpp"
#include "harness/npy/exchange.hpp"
#include "reference/numerics/formats.hpp"

#include <limits>
#include <tuple>

namespace fmha::harness {

AppendExpectation::AppendExpectation(const AppendKvArgs& args)
    : args_(args), expected_(reference::append(args)), queries_(queries_of(args)),
      disagreements_(reference::append_disagreements(
          expected_, reference::append(args, reference::Oracle::row_by_row))) {}

double AppendExpectation::oracle_disagreement() {
    return disagreements_ > 0 ? std::numeric_limits<double>::infinity() : 0.0;
}

StageVerdict AppendExpectation::judge(KernelFamily, const Outputs& outputs, const Numerics&, InputOrigin) {
    StageVerdict verdict;
    verdict.rows = static_cast<std::int64_t>(expected_.rows.size());
    verdict.judgement = judge_appended(args_, outputs, expected_, queries_);
    return verdict;
}

std::size_t write_appended(const AppendKvArgs& args, const TensorSet& tensors,
                           const std::filesystem::path& folder) {
    const reference::AppendedRows expected = reference::append(args);
    for (const auto& [target, name, present] :
         {std::tuple(reference::AppendTarget::k, "k", true),
          std::tuple(reference::AppendTarget::v, "v", true),
          std::tuple(reference::AppendTarget::q, "q", args.q.present())}) {
        if (!present) continue;
        const TensorLayout& layout = tensors.tensor(name).layout();
        ReferenceFile file(layout);
        for (const reference::AppendedRow& row : expected.rows)
            for (std::int64_t c = 0; row.target == target && c < row.cols; ++c)
                file.put(row.slot, row.h, row.row, c,
                         c < row.rotated ? expected.exact[static_cast<std::size_t>(row.first + c)]
                                         : reference::decode(layout.type, expected.code_of(row, c)));
        if (target == reference::AppendTarget::q)
            each_kept_query(args, [&](std::int64_t at, const reference::RowId& id, std::int64_t c) {
                file.put(id.b, id.h, id.i, c,
                         reference::decode(layout.type, load_code(args.q.data, layout.type, at)));
            });
        file.write(folder, updated_name(name));
    }
    return expected.rows.size();
}

} // namespace fmha::harness
