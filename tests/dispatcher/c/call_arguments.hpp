#pragma once

#include "dispatcher/include/fmha/fmha.h"
#include "dispatcher/include/fmha/reference.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace fmha::test {

/// Calls of the C interface on the host that are right, for tests that make one thing wrong.
class CallArguments : public testing::Test {
  protected:
    static constexpr std::int64_t batch = 2, heads = 2, queries = 4, keys = 64, width = 64;

    CallArguments() {
        fmha_context_options options{};
        options.size = sizeof options;
        options.version = FMHA_ABI_VERSION;
        options.arch = "gfx950";
        EXPECT_EQ(fmha_create(&options, &context_), FMHA_OK);
    }
    ~CallArguments() override { fmha_destroy(context_); }
    CallArguments(const CallArguments&) = delete;
    CallArguments& operator=(const CallArguments&) = delete;

    /// (batch, head, row, channel), or packed (row, head, channel).
    template <class T>
    fmha_tensor tensor(std::vector<T>& memory, std::int64_t rows, std::int64_t channels = width) const {
        if (mode == FMHA_GROUP) return {memory.data(), 0, channels, heads * channels, 1};
        return {memory.data(), heads * rows * channels, rows * channels, channels, 1};
    }

    template <class Args>
    Args arguments(fmha_api api) {
        Args args{};
        args.size = sizeof args;
        args.version = FMHA_ABI_VERSION;
        args.api = api;
        args.shape.data_type = FMHA_FP16;
        args.shape.mode = mode;
        args.shape.batch = batch;
        args.shape.nhead_q = args.shape.nhead_k = heads;
        args.shape.seqlen_q = args.shape.max_seqlen_q = queries;
        args.shape.seqlen_k = args.shape.max_seqlen_k = keys;
        args.shape.hdim_q = args.shape.hdim_v = width;
        args.mask.window_left = args.mask.window_right = -1;
        args.q = tensor(q, queries);
        args.k = tensor(k, keys);
        args.v = tensor(v, keys);
        args.o = tensor(o, queries);
        if (mode == FMHA_GROUP) {
            args.lengths.seqstart_q = starts_q.data();
            args.lengths.seqstart_k = starts_k.data();
        }
        return args;
    }
    /// Forward with ALiBi, a slope of every head of every entry.
    fmha_fwd_args sloped() {
        auto args = arguments<fmha_fwd_args>(FMHA_FWD);
        args.score.bias_type = FMHA_ALIBI;
        args.score.alibi_slopes = slopes.data();
        return args;
    }
    fmha_splitkv_args splits() {
        auto args = arguments<fmha_splitkv_args>(FMHA_FWD_SPLITKV);
        args.num_splits = 2;
        return args;
    }
    fmha_bwd_args gradients() {
        auto args = arguments<fmha_bwd_args>(FMHA_BWD);
        args.d_o = tensor(d_o, queries);
        args.lse = tensor(lse, queries, 1);
        args.d = tensor(d, queries, 1);
        args.dq = tensor(dq, queries);
        args.dk = tensor(dk, keys);
        args.dv = tensor(dv, keys);
        return args;
    }
    fmha_batch_prefill_args prefill() {
        mode = FMHA_GROUP;
        auto args = arguments<fmha_batch_prefill_args>(FMHA_BATCH_PREFILL);
        args.shape.seqlen_k = 32;
        args.lengths.seqstart_k = nullptr;
        args.k = args.v = {k.data(), heads * 16 * width, width, heads * width, 1};
        args.place.block_table = table.data();
        args.place.block_table_stride = 2;
        args.place.page_size = 16;
        args.place.page_count = 4;
        args.place.kv_layout = FMHA_KV_LINEAR;
        return args;
    }

    /// "OK", or the rule and the sentence.
    template <class Args>
    std::string run(const Args& args) const {
        if (fmha_run_host(context_, &args, nullptr) == FMHA_OK) return "OK";
        return fmha_last_error(context_);
    }

    template <class Args>
    static std::string of_reference(const Args& args) {
        std::array<char, 256> error{};
        const auto status =
            fmha_reference_attention("gfx950", &args, nullptr, nullptr, error.data(), error.size());
        return status == FMHA_OK ? "OK" : error.data();
    }
    static std::string of_reference(const fmha_bwd_args& args, const fmha_reference_gradients_out& out) {
        std::array<char, 256> error{};
        const auto status = fmha_reference_gradients("gfx950", &args, &out, error.data(), error.size());
        return status == FMHA_OK ? "OK" : error.data();
    }

    fmha_context* context_ = nullptr;
    std::int32_t mode = FMHA_BATCH;
    std::vector<std::uint16_t> q = halves(queries), k = halves(keys), v = halves(keys), o = halves(queries),
                               d_o = halves(queries), dq = halves(queries), dk = halves(keys),
                               dv = halves(keys);
    std::vector<float> lse = std::vector<float>(batch * heads * queries), d = lse,
                       slopes = std::vector<float>(batch * heads, 1.0F);
    std::vector<std::int32_t> starts_q{0, 4, 8}, starts_k{0, 64, 128}, lengths{64, 64}, table{0, 1, 2, 3};

  private:
    /// Small numbers of all signs.
    static std::vector<std::uint16_t> halves(std::int64_t rows) {
        std::vector<std::uint16_t> values(static_cast<std::size_t>(batch * heads * rows * width));
        for (std::size_t n = 0; n < values.size(); ++n)
            values[n] = static_cast<std::uint16_t>((n * 7919 % 1024) | 0x3000U | (n % 3 == 0 ? 0x8000U : 0U));
        return values;
    }
};

} // namespace fmha::test
