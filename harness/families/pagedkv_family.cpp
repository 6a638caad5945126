#include "harness/data/pagedkv_tensors.hpp"
#include "harness/families/all_families.hpp"
#include "harness/families/attention_data.hpp"

namespace fmha::harness {

const Family& fwd_pagedkv_family() {
    using enum DataType;
    static const AttentionFamily<PagedKvArgs> family(KernelFamily::fwd_pagedkv,
                                                     {{fp16, bf16, fp16, bf16, fp8}, {}});
    return family;
}

} // namespace fmha::harness
