#include "reference/numerics/scales.hpp"

#include "dispatcher/types/error.hpp"
#include "reference/views.hpp"

#include <string>

namespace fmha::reference {
namespace {

constexpr std::int64_t mx_block = 32;

[[noreturn]] void reject(QScale mode) {
    throw ProblemError("15", "qscale", std::string(to_string(mode)),
                       "qscale=" + std::string(to_string(mode)) +
                           " does not exist in forward; allowed are none, pertensor, blockscale and mx");
}

double at(const TensorView& view, Decoder decode, std::int64_t b, std::int64_t h, std::int64_t row,
          std::int64_t col) {
    return view.present() ? decode(view.type, stored_code(view, b, h, row, col)) : 1.0;
}

bool paged(const AttentionArgs& args) {
    return args.place.page_size > 0;
}

std::int64_t block_start(const std::int32_t* starts, Mode mode, std::int64_t b) {
    return mode == Mode::group && starts != nullptr ? starts[b] : 0;
}

} // namespace

double q_descale(const AttentionArgs& args, const Entry& entry, Decoder decode, std::int64_t b,
                 std::int64_t h, std::int64_t i, std::int64_t c) {
    switch (args.quant.qscale) {
    case QScale::no_scale:
        return 1.0;
    case QScale::pertensor:
        return at(args.quant.q_descale, decode, 0, 0, 0, 0);
    case QScale::blockscale:
        return at(args.quant.q_descale, decode, b, h,
                  block_start(args.quant.block_scale_seqstart_q, args.shape.mode, b) +
                      i / args.quant.block_scale_size_q,
                  0);
    case QScale::mx:
        return at(args.quant.q_descale, decode, b, h, entry.start_q + i, c / mx_block);
    case QScale::kv_blockscale:
        if (!paged(args)) break;
        return at(args.quant.q_descale, decode, 0, 0, 0, 0);
    case QScale::per_token_head:
        if (!paged(args)) break;
        return at(args.quant.q_descale, decode, b, h, entry.start_q + i, 0);
    }
    reject(args.quant.qscale);
}

double k_descale(const AttentionArgs& args, const Entry& entry, Decoder decode, std::int64_t b,
                 std::int64_t hk, std::int64_t j, std::int64_t c, const KeyPlace& place) {
    switch (args.quant.qscale) {
    case QScale::no_scale:
        return 1.0;
    case QScale::pertensor:
        return at(args.quant.k_descale, decode, 0, 0, 0, 0);
    case QScale::blockscale:
        return at(args.quant.k_descale, decode, b, hk,
                  block_start(args.quant.block_scale_seqstart_k, args.shape.mode, b) +
                      j / args.quant.block_scale_size_k,
                  0);
    case QScale::mx:
        return at(args.quant.k_descale, decode, b, hk, entry.start_k + j, c / mx_block);
    case QScale::kv_blockscale:
        if (!paged(args)) break;
        return at(args.quant.k_descale, decode, place.page, hk, 0, 0);
    case QScale::per_token_head:
        if (!paged(args)) break;
        return at(args.quant.k_descale, decode, place.page, hk, place.slot, 0);
    }
    reject(args.quant.qscale);
}

double v_descale(const AttentionArgs& args, Decoder decode, std::int64_t b, std::int64_t hk, std::int64_t j,
                 std::int64_t c, const KeyPlace& place) {
    const std::int64_t start = block_start(args.quant.block_scale_seqstart_k, args.shape.mode, b);
    switch (args.quant.qscale) {
    case QScale::no_scale:
        return 1.0;
    case QScale::pertensor:
        return at(args.quant.v_descale, decode, 0, 0, 0, 0);
    case QScale::blockscale:
        return at(args.quant.v_descale, decode, b, hk, start + j / args.quant.block_scale_size_k, 0);
    case QScale::mx:
        return at(args.quant.v_descale, decode, b, hk, start + j / mx_block, c);
    case QScale::kv_blockscale:
        if (!paged(args)) break;
        return at(args.quant.v_descale, decode, place.page, hk, 0, 0);
    case QScale::per_token_head:
        if (!paged(args)) break;
        return at(args.quant.v_descale, decode, 0, hk, 0, 0);
    }
    reject(args.quant.qscale);
}

} // namespace fmha::reference
