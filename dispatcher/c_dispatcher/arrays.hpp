#pragma once

#include "dispatcher/c_dispatcher/dense.hpp"

#include <array>
#include <numeric>

/// The arrays of the dispatcher's C functions, placed as the kernels take them.
namespace fmha::c_dispatcher {

struct Kind {
    const char* name;
    fmha_data_type type;
    std::int64_t input, output; ///< bytes of an element
};

constexpr std::array kinds{Kind{"fp16", FMHA_FP16, 2, 2},      Kind{"bf16", FMHA_BF16, 2, 2},
                           Kind{"fp32", FMHA_FP32, 4, 4},      Kind{"fp8", FMHA_FP8, 1, 1},
                           Kind{"bf8", FMHA_BF8, 1, 1},        Kind{"fp8bf16", FMHA_FP8BF16, 1, 2},
                           Kind{"fp8fp32", FMHA_FP8FP32, 1, 4}};

inline const Kind& kind_of(const char* name) {
    const std::string asked = name != nullptr ? name : "fp16";
    std::string allowed;
    for (const Kind& kind : kinds) {
        if (asked == kind.name) return kind;
        allowed += std::string(allowed.empty() ? "" : ", ") + kind.name;
    }
    throw std::invalid_argument("data type \"" + asked + "\" is not known; allowed: " + allowed);
}

struct Sizes {
    std::int64_t batch, nhead_q, nhead_k, seqlen_q, seqlen_k, hdim_q, hdim_v;

    Dense rows(std::int64_t width, std::int64_t element, bool heads_first = true) const {
        return {batch, nhead_q, seqlen_q, width, element, heads_first};
    }
    Dense keys(std::int64_t width, std::int64_t element, bool heads_first = true) const {
        return {batch, nhead_k, seqlen_k, width, element, heads_first};
    }
};

/// Packed copies of a group's tensors; a batch's are taken where they are.
class Placed {
  public:
    Placed(bool group, const Sizes& sizes)
        : group_(group), starts_q_(evenly(sizes.batch, sizes.seqlen_q)),
          starts_k_(evenly(sizes.batch, sizes.seqlen_k)) {}

    void lengths(fmha_lengths& lengths) const {
        if (!group_) return;
        lengths.seqstart_q = starts_q_.data();
        lengths.seqstart_k = starts_k_.data();
    }
    fmha_tensor input(const void* data, const Dense& dense) {
        if (!group_) return dense.view(data);
        return dense.packed_view(copies_.emplace_back(packed(data, dense)).data());
    }
    /// The output of a group gets into `data` by `finish`.
    fmha_tensor output(void* data, const Dense& dense) {
        if (!group_) return dense.view(data);
        outputs_.push_back({data, dense, Bytes(static_cast<std::size_t>(dense.bytes()))});
        return dense.packed_view(outputs_.back().copy.data());
    }
    void finish() const {
        for (const Output& output : outputs_) unpack(output.copy, output.data, output.dense);
    }

  private:
    struct Output {
        void* data;
        Dense dense;
        Bytes copy;
    };
    bool group_;
    std::vector<std::int32_t> starts_q_, starts_k_;
    std::vector<Bytes> copies_;
    std::vector<Output> outputs_;
};

/// K and V in pages of their own, each entry's one after another.
class Pool {
  public:
    Pool(const void* k, const void* v, const Kind& kind, const Sizes& sizes, std::int64_t page_size,
         bool vectorized)
        : size_(page_size), each_((sizes.seqlen_k + page_size - 1) / page_size),
          k_(pages(k, sizes.keys(sizes.hdim_q, kind.input), page_size, vectorized ? 16 / kind.input : 0,
                   false)),
          v_(pages(v, sizes.keys(sizes.hdim_v, kind.input), page_size, vectorized ? 16 / kind.input : 0,
                   true)),
          table_(static_cast<std::size_t>(sizes.batch * each_)), starts_(evenly(sizes.batch, each_)),
          lengths_(static_cast<std::size_t>(sizes.batch), static_cast<std::int32_t>(sizes.seqlen_k)),
          last_(lengths_.size(), static_cast<std::int32_t>((sizes.seqlen_k - 1) % page_size + 1)) {
        std::iota(table_.begin(), table_.end(), 0);
    }

    template <class Args>
    void give(Args& args, const Sizes& sizes, bool by_lists) {
        const auto view = [&](Bytes& data, std::int64_t width) {
            return fmha_tensor{data.data(), sizes.nhead_k * size_ * width, size_ * width, width, 1};
        };
        args.k = view(k_, sizes.hdim_q);
        args.v = view(v_, sizes.hdim_v);
        fmha_kv_place& place = args.place;
        place.page_size = size_;
        place.page_count = static_cast<std::int64_t>(table_.size());
        if (by_lists) {
            place.kv_indptr = starts_.data();
            place.kv_page_indices = table_.data();
            place.kv_last_page_lens = last_.data();
        } else {
            place.block_table = table_.data();
            place.block_table_stride = each_;
            args.lengths.seqlen_k = lengths_.data();
        }
    }

  private:
    std::int64_t size_, each_;
    Bytes k_, v_;
    std::vector<std::int32_t> table_, starts_, lengths_, last_;
};

} // namespace fmha::c_dispatcher
