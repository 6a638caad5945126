#include "harness/data/prefill_tensors.hpp"
#include "harness/families/all_families.hpp"
#include "harness/families/attention_data.hpp"

namespace fmha::harness {

const Family& batch_prefill_family() {
    using enum DataType;
    static const AttentionFamily<BatchPrefillArgs> family(KernelFamily::batch_prefill,
                                                          {{fp16, bf16, fp16, bf16, fp8bf16}, {}});
    return family;
}

} // namespace fmha::harness
