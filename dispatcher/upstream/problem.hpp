#pragma once

#include "dispatcher/types/enums.hpp"
#include "dispatcher/types/fixed_string.hpp"
#include "dispatcher/types/json.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace fmha::upstream {

/// Everything by which a call of upstream's generated API decides: its traits, the argument fields that its conditions
/// read, and the device. Neither semantics section 23 nor the validation rules apply, and a field that
/// upstream's call does not have stays empty.
struct Problem {
    ApiFamily family = ApiFamily::fwd;
    ArchName arch;
    std::optional<DataType> data_type; ///< empty = a tag that no kernel of ours has (`fp8fp16`)
    std::int64_t batch = 0, nhead_q = 0;
    std::int64_t seqlen_q = 0, seqlen_k = 0, max_seqlen_q = 0;
    std::int64_t hdim_q = 0, hdim_v = 0;
    std::int64_t num_cus = 0;
    bool is_group_mode = false;
    bool is_v_rowmajor = true;
    MaskType mask_type = MaskType::no_mask;
    BiasType bias_type = BiasType::no_bias;
    QScale qscale_type = QScale::no_scale;
    Rope rope_type = Rope::none;
    bool has_logits_soft_cap = false, has_lse = false, has_dropout = false, has_sink = false;
    bool skip_min_seqlen_q = false, do_fp8_static_quant = false, use_pagedkv = false;
    bool has_dbias = false, is_store_randval = false, is_deterministic = false;
    bool cu_seqlen_k_ptr = false, seqlen_k_ptr = false, block_table_ptr = false;
    KvLayout kv_memory_layout = KvLayout::unset;
    KvLookup kv_lookup_table = KvLookup::unset;
    std::int64_t page_size = 0;
    LoadMode kv_load_mode = LoadMode::none;
};

/// Reads `{"family": …, "problem": {…}}`; further keys beside these two are ignored, unknown keys inside the
/// problem, missing ones that the family decides by, and wrong types throw InputError that starts with
/// `where`.
Problem problem_from_json(const Json& line, const std::string& where);

} // namespace fmha::upstream
