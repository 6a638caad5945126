// A project that knows nothing of the source tree: it declares a set of kernels, builds and registers them, plans, runs, and validates with the
// reference of the C interface.  cpp_consumer REGISTRY.json
#include "dispatcher/declarations/expand.hpp"
#include "dispatcher/invocation.hpp"
#include "dispatcher/registry/catalogue.hpp"
#include "dispatcher/runner.hpp"
#include "kernels/targets/host/host_target.hpp"

#include <fmha/reference.h>

#include <cmath>
#include <cstdio>
#include <set>
#include <vector>

DECL_FMHA_KERNEL_SET(mine, .add(fmha::SignatureDecl().dtype("fp32").hdim(64).mask(fmha::ANY).lse(fmha::ANY),
                                fmha::AlgorithmDecl().pipeline("qr").tile(fmha::ANY), "gfx950"))

namespace {

constexpr std::int64_t heads_q = 4, heads_k = 2, rows = 70, keys = 90, width = 64;

std::vector<float> numbers(std::int64_t count, std::uint32_t state) {
    std::vector<float> values;
    for (std::int64_t n = 0; n < count; ++n) {
        state = state * 1664525U + 1013904223U;
        values.push_back(static_cast<float>(state >> 8U) / 8388608.0F - 1.0F);
    }
    return values;
}

/// One problem with its data, for both interfaces.
struct Attention {
    std::vector<float> q = numbers(heads_q * rows * width, 1), k = numbers(heads_k * keys * width, 2),
                       v = numbers(heads_k * keys * width, 3), o = std::vector<float>(q.size());
    fmha::FwdArgs args;

    Attention() {
        args.shape.batch = 1;
        args.shape.nhead_q = heads_q;
        args.shape.nhead_k = heads_k;
        args.shape.seqlen_q = rows;
        args.shape.seqlen_k = keys;
        args.shape.hdim_q = args.shape.hdim_v = width;
        const auto view = [](std::vector<float>& data, std::int64_t heads, std::int64_t length) {
            return fmha::TensorView{
                data.data(), fmha::ElementType::fp32, heads * length * width, length * width, width, 1};
        };
        args.q = view(q, heads_q, rows);
        args.k = view(k, heads_k, keys);
        args.v = view(v, heads_k, keys);
        args.o = view(o, heads_q, rows);
        args.score.scale_s = 0.125F;
        args.mask = {fmha::MaskType::bottom_right, -1, 0, 0};
    }

    double worst_error() const {
        const auto view = [](const std::vector<float>& data, std::int64_t heads, std::int64_t length) {
            return fmha_tensor{const_cast<float*>(data.data()), heads * length * width, length * width, width,
                               1};
        };
        fmha_fwd_args call{};
        call.size = sizeof call;
        call.version = FMHA_ABI_VERSION;
        call.api = FMHA_FWD;
        call.shape.data_type = FMHA_FP32;
        call.shape.batch = 1;
        call.shape.nhead_q = heads_q;
        call.shape.nhead_k = heads_k;
        call.shape.seqlen_q = rows;
        call.shape.seqlen_k = keys;
        call.shape.hdim_q = call.shape.hdim_v = width;
        call.q = view(q, heads_q, rows);
        call.k = view(k, heads_k, keys);
        call.v = view(v, heads_k, keys);
        call.o = view(o, heads_q, rows);
        call.score.scale_s = 0.125F;
        call.mask.type = FMHA_BOTTOM_RIGHT;
        call.mask.window_left = -1;
        std::vector<double> exact(o.size());
        char error[256] = "";
        if (fmha_reference_attention("gfx950", &call, exact.data(), nullptr, error, sizeof error) !=
            FMHA_OK) {
            std::fprintf(stderr, "%s\n", error);
            return INFINITY;
        }
        double worst = 0.0;
        for (std::size_t n = 0; n < o.size(); ++n) {
            const double distance = std::abs(o[n] - exact[n]);
            worst = std::isnan(distance) ? INFINITY : std::fmax(worst, distance);
        }
        return worst;
    }
};

} // namespace

int main(int count, char** words) {
    const auto archs = fmha::arch::ArchSet::built_in();
    const fmha::Expansion set = fmha::expand(fmha::declared_kernel_set("mine"), archs);
    fmha::Registry registry("mine", [](const fmha::KernelConfig& config) {
        return fmha::catalog::name_of(fmha::catalog::RuleSet::house, config);
    });
    fmha::add_declared(registry, archs, fmha::declared_kernel_set("mine"));
    // The input of a generator: fmha generate --config REGISTRY.json.
    if (count > 1) registry.export_json(std::filesystem::path(words[1]));
    for (const fmha::KernelEntry& entry : registry.get_all())
        std::printf("%s\n", registry.name_of(entry).c_str());

    fmha::Registry built("built");
    for (const fmha::KernelConfig& config : set.kernels) built.add(fmha::host_target::make_instance(config));
    const fmha::Dispatcher dispatcher(built, fmha::devices_of(archs));
    const fmha::Runner runner(dispatcher);
    Attention attention;
    fmha::Signature traits;
    traits.data_type = fmha::DataType::fp32;
    const fmha::Problem problem = fmha::problem_of(traits, attention.args, fmha::ArchName("gfx950"));
    const fmha::ExecutionPlan plan = dispatcher.plan(problem);
    if (!plan.valid() || set.kernels.size() < 2) return 1;
    int ran = 0;
    for (const fmha::KernelConfig& config : set.kernels) {
        if (config.signature.mask == fmha::MaskClass::none || config.signature.has_lse) continue;
        std::fill(attention.o.begin(), attention.o.end(), NAN);
        runner.run_explicit(fmha::identifier(config), problem, attention.args, {});
        const double error = attention.worst_error();
        if (!(error < 1e-5)) {
            std::fprintf(stderr, "%s is wrong by %g\n", fmha::identifier(config).c_str(), error);
            return 1;
        }
        ++ran;
    }
    std::fprintf(stderr, "%d kernels of %zu ran and are right\n", ran, set.kernels.size());
    return ran > 0 ? 0 : 1;
}
