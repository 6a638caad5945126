#pragma once

#include "dispatcher/types/args.hpp"
#include "dispatcher/types/kernel_config.hpp"
#include "dispatcher/types/numerics.hpp"
#include "reference/forward.hpp"
#include "tests/kernels/host/fwd_problem.hpp"
#include "tests/kernels/host/judge.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fmha::test {

/// The pool of a problem of batch prefill.
struct PoolSpec {
    KvLayout layout = KvLayout::linear;
    KvLookup lookup = KvLookup::vllm_2d;
    std::int64_t page_size = 16;
    QScale qscale = QScale::no_scale; ///< kv_blockscale and per_token_head; others are the shape's
    bool share_first_page = false;    ///< all entries begin with the page of the first one (P-5)
    std::uint64_t order = 1;          ///< of the pages, and of what lies between the keys
    std::string text() const;
};

/// A problem of forward, of packed queries, whose keys lie in pages. What no key needs is NaN in the pool and out of bounds in
/// the table.
class PrefillProblem {
  public:
    PrefillProblem(const host_target::test::Shape& shape, const PoolSpec& spec);
    PrefillProblem(const PrefillProblem&) = delete;
    PrefillProblem& operator=(const PrefillProblem&) = delete;
    ~PrefillProblem() = default;

    const BatchPrefillArgs& args() const { return args_; }
    /// A kernel for this problem with the given tile.
    KernelConfig config(Tile tile) const;

    /// O and LSE against forward over the same keys one after another, or, where a descale belongs to a page or a token, against
    /// the reference over the pool. The reference is computed once for all that have the same numerics.
    host_target::test::Distance judge(const Numerics& numerics) const;
    std::vector<std::uint8_t> outputs() const { return fwd_.output_bytes(); }
    void poison_outputs() { fwd_.poison_outputs(); }

  private:
    using Bytes = std::vector<std::byte>;
    void place_entries();
    TensorView pool(const TensorView& from, bool is_value, Bytes& memory) const;
    void make_scales();
    reference::ForwardRows expected(const Numerics& numerics) const;

    host_target::test::FwdProblem fwd_;
    PoolSpec spec_;
    std::vector<std::int64_t> keys_;
    std::vector<std::vector<std::int32_t>> page_of_;
    std::int64_t pages_ = 0;
    std::vector<std::int32_t> table_, seqlen_k_, indptr_, indices_, last_;
    Bytes k_, v_;
    std::vector<float> q_scales_, k_scales_, v_scales_;
    BatchPrefillArgs args_;
    mutable std::optional<reference::ForwardRows> expected_; ///< of the numerics of the last judgement
};

/// A problem that `kernel` can be launched with; `turn` chooses among several.
struct PrefillSpec {
    host_target::test::Shape shape;
    PoolSpec pool;
};
PrefillSpec prefill_spec_for(const KernelConfig& kernel, std::size_t turn);

} // namespace fmha::test
