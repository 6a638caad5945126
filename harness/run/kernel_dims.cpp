#include "harness/run/kernel_dims.hpp"

#include "dispatcher/plan/plan.hpp"
#include "kernels/catalog/catalog.hpp"

namespace fmha::harness {

KernelDims kernel_dims(const std::string& arch, ApiFamily family, const arch::ArchSet& archs) {
    catalog::Request request;
    request.rules = catalog::RuleSet::house;
    request.targets = {archs.at(arch).name()};
    request.families = catalog::FamilySet::of(main_stage(family));
    KernelDims dims;
    catalog::enumerate(archs, request, [&](const KernelConfig& kernel) {
        if (kernel.signature.mode == Mode::batch)
            dims[kernel.signature.data_type].emplace(kernel.signature.hdim_q, kernel.signature.hdim_v);
    });
    return dims;
}

} // namespace fmha::harness
