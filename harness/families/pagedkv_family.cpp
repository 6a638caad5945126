#include "harness/data/pagedkv_tensors.hpp"
#include "harness/families/all_families.hpp"
#include "harness/families/attention_data.hpp"

namespace fmha::harness {

const Family& pagedkv_family() {
    static const AttentionFamily<PagedKvArgs> family(KernelFamily::fwd_pagedkv);
    return family;
}

} // namespace fmha::harness
