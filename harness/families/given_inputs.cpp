#include "harness/families/given_inputs.hpp"

#include "dispatcher/types/check_contents.hpp"
#include "harness/npy/exchange.hpp"

namespace fmha::harness {

void read_given_inputs(const std::filesystem::path& folder, const Family& family, const Case& c,
                       CaseData& data) {
    read_inputs(folder, data.tensors());
    for (const KernelFamily stage : family.stages(c)) check_contents(data.invocation_of(stage));
}

} // namespace fmha::harness
