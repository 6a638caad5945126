#include "harness/data/prefill_tensors.hpp"
#include "harness/families/all_families.hpp"
#include "harness/families/attention_data.hpp"

namespace fmha::harness {

const Family& prefill_family() {
    static const AttentionFamily<BatchPrefillArgs> family(KernelFamily::batch_prefill);
    return family;
}

} // namespace fmha::harness
