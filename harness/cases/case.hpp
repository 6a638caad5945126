#pragma once

#include "dispatcher/types/enums.hpp"
#include "harness/cases/tier.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace fmha::harness {

/// Input data sets (docs/gates.md; tolerances B.10 and the exact fills).
enum class Fill : std::uint8_t {
    normal,      ///< N
    sharp,       ///< S
    indexed,     ///< I
    zeros,       ///< Z
    huge,        ///< H
    uniform,     ///< U
    integers,    ///< T
    edge_last,   ///< the last visible key wins, bit for bit
    edge_first,  ///< the first visible key wins, bit for bit
    rising,      ///< every key tile raises the running maximum
    ties,        ///< O lies half way between two values of its type, exactly
    weight_ties, ///< weights lie half way between 0 and the smallest value of P's type, exactly
    shifted,     ///< N with every score lowered by 1e5, as far as the type reaches
    heavy_tailed ///< N with a few rows of Q and V a hundred times larger
};

/// How the caller hands over the logical lengths of one side (N-3). `both` is an invalid problem and exists
/// so that its refusal can be a case.
enum class LengthForm : std::uint8_t { none, seqlen, cu_seqlen, both };

/// Named layouts of L-3: bhsd is perm 1, bshd perm 0.
enum class Layout : std::uint8_t { bhsd, bshd };

/// Every fourth head has a sink of −∞, and with `neutral` every second one, from the first on.
enum class SinkLogits : std::uint8_t { none, normal, saturated, neutral };

/// Which stages of split-KV a case runs.
enum class SplitStage : std::uint8_t {
    both,
    combine, ///< the second one alone, on partial results that the case fills
};

/// The expected end of a case.
enum class Expectation : std::uint8_t { pass, invalid_problem, no_kernel };

/// How the LSEs of the splits of a row lie, in cases that bring partial results.
enum class PartialLse : std::uint8_t {
    normal,     ///< normal with variance 4
    equal,      ///< all the same
    far,        ///< 1500 away from 0, above it in one row and below it in the next
    wide,       ///< hundreds apart
    some_empty, ///< two in five −∞, and one row in five has nothing else
    all_empty,
    last_only, ///< all but that of the last split −∞
};

/// The fields of split-KV cases alone.
struct SplitPart {
    std::int64_t num_splits = 1; ///< 0 = S-6 chooses
    SplitStage stage = SplitStage::both;
    PartialLse partial_lse = PartialLse::normal;
    friend bool operator==(const SplitPart&, const SplitPart&) = default;
};

/// Where keys lie, in cases of families with a cache.
struct CachePart {
    std::int64_t page_size = 0;    ///< keys a page; 0 = contiguous
    bool cache_batch_idx = false;  ///< entries have slots of a larger cache, in another order (P-6)
    std::int64_t capacity = 0;     ///< keys that an entry has room for; 0 = as many as it gets
    bool gappy = false;            ///< entries begin behind one another in their pages, with gaps (P-2)
    std::int64_t shared_pages = 0; ///< first pages of entry 0 that all entries have (P-5)
    std::int64_t page_order = 0;   ///< which of many orders the pages or slots lie in
    KvLayout kv_layout =
        KvLayout::unset; ///< of a page, and which table names pages; batch prefill states both (B-2)
    KvLookup kv_lookup = KvLookup::unset;
    friend bool operator==(const CachePart&, const CachePart&) = default;
};

/// Further fields of append-KV cases. Their seqlen_k is the length of the cache before.
struct AppendPart {
    std::int64_t seqlen_knew = 1;
    Rope rope = Rope::none;
    std::int64_t rotary_dim = 0; ///< 0 = hdim_q
    bool any_bits = false;       ///< copied tensors hold any bits but NaN
    friend bool operator==(const AppendPart&, const AppendPart&) = default;
};

/// The calls around attention over a cache, one of three at a time; 0 = none.
struct ChainPart {
    std::int64_t appended =
        0; ///< last keys of every entry, which append-KV stores before attention reads them
    std::int64_t chunk_rows = 0; ///< query rows of a call, where several calls must give the bits of one
    std::int64_t last_rows = 0; ///< the last query rows of every entry, which alone are computed, by one call
    friend bool operator==(const ChainPart&, const ChainPart&) = default;
};

/// Who computes O and LSE, which backward takes from forward.
enum class ForwardResults : std::uint8_t {
    reference, ///< the reference, rounded to the types in which they are stored
    kernel,    ///< the forward kernel of the same case, which runs first
};

/// The fields of backward cases alone.
struct BackwardPart {
    bool dbias = false;         ///< dBias is asked for
    bool deterministic = false; ///< dQ has the same bits in every run (W-16)
    bool reduce_dk_dv = false;  ///< dK and dV are sums over the query heads of a KV head (W-11)
    ForwardResults forward = ForwardResults::reference;
    std::int64_t compute_units = 0; ///< W of X-2, which the workspace is made for; 0 = one a key tile
    friend bool operator==(const BackwardPart&, const BackwardPart&) = default;
};

/// One concrete case: everything that decides the bytes that run, nothing left to defaults elsewhere.
/// The case language (cases/README.md) expands files into these; the printed name of one is its reproducer. Fields that
/// several families share stand in the case itself, those of one family in a part.
struct Case {
    std::string id;    ///< "fwd/ragged_tail[dtype=bf16,seqlen_k=129]@7"
    std::string about; ///< the file's sentence
    Tier tier = Tier::smoke;
    std::vector<std::string> labels;
    ApiFamily family = ApiFamily::fwd;

    DataType data_type = DataType::fp16;
    Mode mode = Mode::batch;
    std::int64_t batch = 2, nhead_q = 2, nhead_k = 2, hdim_q = 128, hdim_v = 128;

    /// Logical lengths, one value for all entries or one per entry.
    std::vector<std::int64_t> seqlen_q{128}, seqlen_k{128};
    /// Allocated lengths, same form; empty = logical. In batch mode the largest entry is the extent.
    std::vector<std::int64_t> physical_q, physical_k;
    LengthForm length_form_q = LengthForm::none, length_form_k = LengthForm::none;
    std::int64_t min_seqlen_q = 0;

    Layout iperm = Layout::bhsd, operm = Layout::bhsd;
    VLayout v_layout = VLayout::row;
    /// Elements added to every row, head and batch stride (and kept as poisoned padding); 0 = packed.
    std::int64_t stride_padding = 8;
    /// Overrides the batch stride of the named tensor, for offset tests; 0 = derived.
    std::string wide_tensor;
    std::int64_t wide_batch_stride = 0;

    MaskType mask = MaskType::no_mask;
    std::int64_t window_left = -1, window_right = -1, sink_size = 0;

    BiasType bias = BiasType::no_bias;
    int bias_rank = 2;            ///< elementwise e:0, e:1, e:2; ALiBi a:0, a:1
    bool negative_slopes = false; ///< ALiBi -a:0, -a:1
    bool lse = true;
    double logits_soft_cap = 0.0; ///< 0 = off
    double p_drop = 0.0;
    std::uint64_t dropout_seed = 0, dropout_offset = 0;
    bool store_randval = false;
    double scale_s = 0.0; ///< 0 = 1/√hdim_q (H-3)
    double scale_o = 1.0;
    bool static_quant = false; ///< by a kernel whose record says that it quantises statically (O-1)
    SinkLogits sink_logits = SinkLogits::none;
    QScale qscale = QScale::no_scale;
    std::int64_t block_scale_q = 128, block_scale_k = 128;
    SplitPart split;
    CachePart cache;
    AppendPart append;
    ChainPart chain;
    BackwardPart backward;

    Fill fill = Fill::normal;
    std::uint64_t seed = 1; ///< of the data, the number after '@'
    int repeats = 2;        ///< runs that must agree bit for bit; 1 = none to compare with
    bool sampled_rows = false;
    /// Entries, and heads, have the numbers of the plain case from the last one on. No file says so; repeated runs have them (value_order.hpp).
    bool entries_reversed = false, heads_reversed = false;

    Expectation expect = Expectation::pass;
    std::string expect_rule;   ///< rule id or refusal reason that must be named, with expect != pass
    std::string expect_kernel; ///< glob that the planned kernel's name must match; empty = any

    friend bool operator==(const Case&, const Case&) = default;
};

} // namespace fmha::harness
