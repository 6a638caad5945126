#include "harness/run/kernel_dims.hpp"

#include "dispatcher/plan/plan.hpp"
#include "harness/run/catalogue_kernels.hpp"

namespace fmha::harness {

KernelDims kernel_dims(const std::string& arch, ApiFamily family, const arch::ArchSet& archs) {
    KernelDims dims;
    const auto request = working_list(arch, archs, catalog::FamilySet::of(main_stage(family)));
    catalog::enumerate(archs, request, [&](const KernelConfig& kernel) {
        if (kernel.signature.mode == Mode::batch)
            dims[kernel.signature.data_type].emplace(kernel.signature.hdim_q, kernel.signature.hdim_v);
    });
    return dims;
}

} // namespace fmha::harness
