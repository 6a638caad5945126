#include "harness/data/fwd_tensors.hpp"
#include "harness/families/all_families.hpp"
#include "harness/families/attention_data.hpp"

namespace fmha::harness {

const Family& fwd_family() {
    static const AttentionFamily<FwdArgs> family(KernelFamily::fwd);
    return family;
}

} // namespace fmha::harness
