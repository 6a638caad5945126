#include "harness/data/fwd_tensors.hpp"
#include "harness/families/all_families.hpp"
#include "harness/families/attention_data.hpp"

namespace fmha::harness {

const Family& fwd_family() {
    using enum DataType;
    static const AttentionFamily<FwdArgs> family(
        KernelFamily::fwd, {{fp16, bf16, fp16, bf16, fp32, fp8bf16, fp8, fp8fp32, mxfp8, mxfp4},
                            {QScale::no_scale, QScale::pertensor, QScale::blockscale}});
    return family;
}

} // namespace fmha::harness
