#include "kernels/targets/null_tensors.hpp"

#include "kernels/programs/matrix.hpp"

namespace fmha::targets {

Elements Elements::of(const Shape& shape, const LengthArrays& lengths) {
    Elements has;
    for (std::int64_t b = 0; b < shape.batch; ++b) {
        const kernels::Entry entry = kernels::Entry::of(shape, lengths, b);
        has.queries |= entry.seqlen_q > 0;
        has.keys |= entry.seqlen_k > 0;
        has.pairs |= entry.seqlen_q > 0 && entry.seqlen_k > 0;
    }
    return has;
}

} // namespace fmha::targets
