#include "dispatcher/c/arguments.hpp"
#include "dispatcher/c/guarded.hpp"
#include "dispatcher/include/fmha/reference.h"
#include "dispatcher/types/check_contents.hpp"
#include "kernels/arch/arch.hpp"
#include "reference/attention.hpp"
#include "reference/backward.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace {

using namespace fmha;
using c::require;

/// Runs `body` and puts the sentence of a failure into the caller's text.
template <class Body>
fmha_status told(char* error, uint64_t capacity, Body&& body) {
    std::string sentence, rule;
    const fmha_status status = c::guarded(sentence, rule, body);
    if (error != nullptr && capacity > 0) {
        const auto count = static_cast<std::size_t>(std::min<uint64_t>(sentence.size(), capacity - 1));
        std::memcpy(error, sentence.data(), count);
        error[count] = '\0';
    }
    return status;
}

c::Call checked_call(const char* arch, const void* args) {
    require(arch != nullptr, "arch");
    ArchName name;
    if (!parse_field_text(arch, name))
        throw InputError(fmt::format("arch is {}, which is too long for an architecture", arch));
    // A misspelt name would silently have the 8-bit types of another GPU. Reading the files takes longer than a small reference.
    static const auto known = arch::ArchSet::built_in();
    c::Call call = c::call_of(args, known.at(name).name(), c::Memory::host);
    check_contents(call.arguments);
    return call;
}

/// Of calls with rows and keys.
void require_bias(const ScoreArgs& score, const TensorView& bias) {
    require(score.bias_type != BiasType::elementwise || bias.present(), "bias.data");
}

void require_scales(const ScoreArgs& score, const QuantArgs& quant) {
    require(score.bias_type != BiasType::alibi || score.alibi_slopes != nullptr, "score.alibi_slopes");
    if (quant.qscale == QScale::no_scale) return;
    require(quant.q_descale.present(), "quant.q_descale.data");
    require(quant.k_descale.present(), "quant.k_descale.data");
    require(quant.v_descale.present(), "quant.v_descale.data");
}

/// The problem that the oracles evaluate, of the arguments of any API that attends.
reference::AttentionArgs attention_args(const Invocation& arguments) {
    if (const auto* forward = std::get_if<FwdArgs>(&arguments)) return reference::attention_of(*forward);
    if (const auto* paged = std::get_if<PagedKvArgs>(&arguments)) return reference::attention_of(*paged);
    if (const auto* prefill = std::get_if<BatchPrefillArgs>(&arguments))
        return reference::attention_of(*prefill);
    if (const auto* split = std::get_if<SplitKvArgs>(&arguments)) {
        SplitKvArgs whole = *split;
        whole.partials.num_splits = 1;
        reference::AttentionArgs args = reference::attention_of(whole, 0);
        args.score = split->score; // a part leaves the sink logit and the output scale to the combination
        return args;
    }
    throw UnsupportedInvocation(
        "fmha_reference_attention computes fwd, fwd_pagedkv, batch_prefill and fwd_splitkv");
}

/// The lines of the caller's dense arrays that belong to `ids`, whose position is the member `position`. In batch mode every one of the
/// `positions` of a head has a line, whether a length reaches it or not; in group mode the logical ones alone do.
template <class Id>
std::vector<std::int64_t> lines_of(const std::vector<Id>& ids, std::int64_t Id::*position, Mode mode,
                                   std::int64_t heads, std::int64_t positions) {
    std::vector<std::int64_t> lines(ids.size());
    if (mode == Mode::group)
        std::iota(lines.begin(), lines.end(), 0);
    else
        std::ranges::transform(ids, lines.begin(), [&](const Id& id) {
            return (id.b * heads + id.h) * positions + id.*position;
        });
    return lines;
}

/// Copies one line of `values` to each of `lines` of an array with `width` numbers a line.
void write(std::span<const double> values, std::span<const std::int64_t> lines, double* out,
           std::int64_t width) {
    if (out == nullptr || lines.empty()) return;
    const std::size_t cols = values.size() / lines.size();
    for (std::size_t n = 0; n < lines.size(); ++n)
        std::ranges::copy(values.subspan(n * cols, cols), out + lines[n] * width);
}

/// dBias, whose lines have room for the keys of the longest entry, with rows or without; each has the keys of its own.
void write_dbias(const BwdArgs& args, const reference::GradientTable& dbias,
                 const std::vector<reference::RowId>& rows, std::span<const std::int64_t> lines,
                 double* out) {
    if (out == nullptr) return;
    const FwdArgs lengths = reference::forward_part(args);
    std::int64_t width = args.shape.mode == Mode::batch ? args.shape.seqlen_k : 0;
    for (std::int64_t b = 0; b < args.shape.batch; ++b)
        width = std::max(width, reference::entry_lengths(lengths, b).seqlen_k);
    const std::span<const double> values = dbias.value;
    for (std::size_t n = 0; n < lines.size(); ++n) {
        const auto keys = static_cast<std::size_t>(reference::entry_lengths(lengths, rows[n].b).seqlen_k);
        std::ranges::copy(values.subspan(n * static_cast<std::size_t>(dbias.cols), keys),
                          out + lines[n] * width);
    }
}

} // namespace

extern "C" {

fmha_status fmha_reference_attention(const char* arch, const void* args, double* o, double* lse, char* error,
                                     uint64_t error_capacity) {
    return told(error, error_capacity, [&] {
        const c::Call call = checked_call(arch, args);
        const reference::AttentionArgs attention = attention_args(call.arguments);
        require_scales(attention.score, attention.quant);
        const std::vector<reference::RowId> rows = reference::all_rows(attention);
        if (rows.empty()) return;
        require(attention.q.present(), "q.data");
        const bool keys = std::any_of(rows.begin(), rows.end(), [&](const reference::RowId& row) {
            return row.h == 0 && row.i == 0 && entry_lengths(attention, row.b).seqlen_k > 0;
        });
        require(!keys || attention.k.present(), "k.data");
        require(!keys || attention.v.present(), "v.data");
        if (keys) require_bias(attention.score, attention.bias);
        reference::ForwardOptions options;
        options.companions = false;
        reference::ForwardRows result = reference::attention(attention, rows, options);
        for (std::int64_t row = 0; row < result.o.rows(); ++row)
            for (double& value : result.o.row(row)) value *= result.scale_o;
        const Shape& shape = attention.shape;
        const auto lines = lines_of(rows, &reference::RowId::i, shape.mode, shape.nhead_q, shape.seqlen_q);
        write(result.o.values(), lines, o, result.o.cols());
        write(result.lse.values(), lines, lse, 1);
    });
}

fmha_status fmha_reference_gradients(const char* arch, const fmha_bwd_args* args,
                                     const fmha_reference_gradients_out* out, char* error,
                                     uint64_t error_capacity) {
    return told(error, error_capacity, [&] {
        require(out != nullptr, "out");
        if (out->size != sizeof *out || out->version != FMHA_ABI_VERSION)
            throw InputError(fmt::format("out states size {} and version {}; this library has {} and {}",
                                         out->size, out->version, sizeof *out, FMHA_ABI_VERSION));
        const c::Call call = checked_call(arch, args);
        const auto* backward = std::get_if<BwdArgs>(&call.arguments);
        if (backward == nullptr)
            throw UnsupportedInvocation("fmha_reference_gradients computes bwd; args.api names another API");
        require_scales(backward->score, {});
        reference::GradientRequest request;
        if (out->dq != nullptr || out->d != nullptr || out->dbias != nullptr)
            request.rows = reference::all_rows(*backward);
        if (out->dk != nullptr || out->dv != nullptr) request.keys = reference::all_keys(*backward);
        request.dbias = out->dbias != nullptr;
        request.d_sink = out->d_sink != nullptr;
        const std::vector<reference::RowId> all_rows = reference::all_rows(*backward);
        const std::vector<reference::KeyId> all_keys = reference::all_keys(*backward);
        const bool differentiates = !request.rows.empty() || !request.keys.empty();
        const bool rows = !all_rows.empty() && (differentiates || request.d_sink);
        const bool keys = !all_keys.empty() && differentiates;
        for (const auto& [tensor, name, needed] : {std::tuple{&backward->q, "q.data", rows},
                                                   {&backward->k, "k.data", keys},
                                                   {&backward->v, "v.data", keys},
                                                   {&backward->o, "o.data", rows},
                                                   {&backward->lse, "lse.data", rows},
                                                   {&backward->d_o, "d_o.data", rows}})
            require(!needed || tensor->present(), name);
        if (rows && keys && std::ranges::any_of(all_rows, [&](const reference::RowId& row) {
                return std::ranges::binary_search(all_keys, row.b, {}, &reference::KeyId::b);
            }))
            require_bias(backward->score, backward->bias);
        const reference::Gradients result = reference::backward(*backward, request, {.companions = false});
        const Shape& shape = backward->shape;
        const std::int64_t key_heads = backward->reduce_dk_dv ? shape.nhead_k : shape.nhead_q;
        const auto row_lines =
            lines_of(request.rows, &reference::RowId::i, shape.mode, shape.nhead_q, shape.seqlen_q);
        const auto key_lines =
            lines_of(request.keys, &reference::KeyId::j, shape.mode, key_heads, shape.seqlen_k);
        write(result.dq.value, row_lines, out->dq, result.dq.cols);
        write(result.d.value, row_lines, out->d, result.d.cols);
        write_dbias(*backward, result.dbias, request.rows, row_lines, out->dbias);
        write(result.dk.value, key_lines, out->dk, result.dk.cols);
        write(result.dv.value, key_lines, out->dv, result.dv.cols);
        if (out->d_sink != nullptr) std::ranges::copy(result.d_sink.value, out->d_sink);
    });
}

} // extern "C"
