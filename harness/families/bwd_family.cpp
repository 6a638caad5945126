#include "dispatcher/plan/plan.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/data/bwd_tensors.hpp"
#include "harness/families/all_families.hpp"
#include "harness/families/bwd_expectation.hpp"
#include "harness/gates/attention_outputs.hpp"
#include "harness/gates/bwd_gates.hpp"
#include "harness/npy/exchange.hpp"
#include "reference/numerics/formats.hpp"

#include <algorithm>

namespace fmha::harness {
namespace {

constexpr KernelFamily main_family = KernelFamily::bwd_dq_dk_dv;

/// The facts that decide the workspace of a case with the kernel `main`.
BwdWorkspaceLayout workspace_of(const Case& c, const Geometry& geometry, const KernelConfig& main) {
    BwdWorkspaceInputs inputs = bwd_workspace_inputs(to_problem(c, {}), main);
    std::vector<std::int64_t> physical_q, physical_k;
    inputs.keys_may_be_shorter = false;
    for (const EntryGeometry& entry : geometry.entries) {
        physical_q.push_back(entry.physical_q);
        physical_k.push_back(entry.physical_k);
        inputs.keys_may_be_shorter |= entry.seqlen_k < entry.physical_k || entry.seqlen_k == 0;
    }
    if (inputs.group) {
        inputs.physical_q = physical_q;
        inputs.physical_k = physical_k;
    }
    return bwd_workspace_layout(inputs);
}

/// The logical content of a tensor, to be put there again after its memory was poisoned.
class KeptCodes {
  public:
    bool empty() const { return codes_.empty(); }
    void take(const TensorSpec& spec, const GuardedTensor& tensor) {
        codes_.clear();
        each_cell(spec,
                  [&](auto b, auto h, auto row, auto c) { codes_.push_back(tensor.code(b, h, row, c)); });
    }
    void put(const TensorSpec& spec, GuardedTensor& tensor) const {
        std::size_t next = 0;
        each_cell(spec,
                  [&](auto b, auto h, auto row, auto c) { tensor.set_code(b, h, row, c, codes_[next++]); });
    }

  private:
    std::vector<std::uint32_t> codes_;
};

class BwdData final : public CaseData {
  public:
    BwdData(const Case& c, Fp8Flavour flavour) : tensors_(c, flavour) {
        if (!runs_forward(c)) {
            fill_with_results("o", o_);
            fill_with_results("lse", lse_);
        }
        tensors_.set().fill_with("workspace", [this](GuardedTensor& memory) {
            workspace_.prepare({static_cast<std::byte*>(memory.view().data),
                                static_cast<std::size_t>(workspace_.size.bytes)});
        });
        tensors_.refill(Poison::nan);
    }

    TensorSet& tensors() override { return tensors_.set(); }
    void prepare(std::span<const KernelConfig> kernels) override;
    Invocation invocation() const override { return tensors_.args(); }
    Invocation invocation_of(KernelFamily stage) const override {
        if (stage == KernelFamily::fwd) return forward_before(tensors_.args());
        return invocation();
    }
    /// Partial sums of dQ where X-5 asks for it.
    std::span<unsigned char> cleared() override {
        if (!workspace_.size.zero_dq_acc) return {};
        const std::span whole(static_cast<unsigned char*>(tensors_.tensor("workspace").view().data),
                              static_cast<std::size_t>(workspace_.size.bytes));
        return whole.subspan(static_cast<std::size_t>(workspace_.size.host_bytes));
    }
    Outputs outputs(KernelFamily stage) const override {
        if (stage == KernelFamily::fwd)
            return attention_outputs(reference::attention_of(forward_before(tensors_.args())));
        return bwd_outputs(tensors_.args(), stage, kernels_.direct);
    }
    bool writes(KernelFamily stage, std::string_view name) const override;
    bool repeats(KernelFamily, std::string_view name) const override {
        // Atomic sums come in any order (W-16).
        return name != "dq" || kernels_.direct || tensors_.of_case().backward.deterministic;
    }
    std::unique_ptr<CaseExpectation> expectation(int threads) const override {
        return std::make_unique<BwdExpectation>(tensors_, kernels_, threads);
    }
    std::size_t write_reference(const std::filesystem::path& folder, int threads) const override;

  private:
    void fill_with_results(std::string_view name, KeptCodes& kept);
    void write_forward(const std::filesystem::path& folder) const;
    const TensorSpec& spec_of(std::string_view name) const {
        return *std::ranges::find(tensors_.set().specs(), name, &TensorSpec::name);
    }

    BwdTensors tensors_;
    BackwardKernels kernels_;
    BwdWorkspaceLayout workspace_;
    KeptCodes o_, lse_; ///< forward's results, which take longer to compute than all other tensors to fill
};

void BwdData::fill_with_results(std::string_view name, KeptCodes& kept) {
    tensors_.set().fill_with(name, [this, name, &kept](GuardedTensor& tensor) {
        if (o_.empty()) { // everything that forward reads is filled before "o"
            store_forward_results(tensors_);
            o_.take(spec_of("o"), tensors_.tensor("o"));
            lse_.take(spec_of("lse"), tensors_.tensor("lse"));
        }
        kept.put(spec_of(name), tensor);
    });
}

void BwdData::prepare(std::span<const KernelConfig> kernels) {
    const auto main = std::ranges::find(kernels, main_family,
                                        [](const KernelConfig& kernel) { return kernel.signature.family; });
    if (main == kernels.end()) return;
    workspace_ = workspace_of(tensors_.of_case(), tensors_.geometry(), *main);
    kernels_.direct = writes_dq_directly(*main);
    // Each key tile is added on its own, by any block.
    kernels_.dq_parts = 1 + tensors_.geometry().max_seqlen_k / main->algorithm.tile.n0;
    TensorLayout layout =
        array_layout(ElementType::fp32, workspace_.size.bytes / element_bytes(ElementType::fp32));
    // Partial sums that begin at a line of a device's cache are added to faster. A caller who cares places them so (fmha.h).
    constexpr std::int64_t line = 128;
    layout.lead = (line - workspace_.size.host_bytes % line) % line;
    tensors_.set().lay_out("workspace", layout);
}

bool BwdData::writes(KernelFamily stage, std::string_view name) const {
    switch (stage) {
    case KernelFamily::fwd:
        return name == "o" || name == "lse" || name == "randval";
    case KernelFamily::bwd_dot_do_o:
        return name == "d" || name == "d_sink";
    case main_family:
        return name == "workspace" || name == "dk" || name == "dv" || name == "dbias" ||
               (name == "dq" && kernels_.direct);
    default:
        return name == "dq";
    }
}

/// The gradients, and O and LSE where the case runs forward; NaN where no line was computed.
std::size_t BwdData::write_reference(const std::filesystem::path& folder, int threads) const {
    const BwdArgs args = tensors_.args();
    if (runs_forward(tensors_.of_case())) {
        store_forward_results(tensors_);
        write_forward(folder);
    }
    const reference::GradientRequest request = gradient_request(tensors_);
    const reference::Gradients expected =
        reference::backward(args, request, {.companions = false, .threads = threads});
    const bool group = args.shape.mode == Mode::group;
    const auto write = [&](const char* name, const reference::GradientTable& table, const auto& ids,
                           auto place) {
        if (!tensors_.has(name)) return;
        ReferenceFile file(tensors_.tensor(name).layout());
        for (std::size_t n = 0; n < ids.size(); ++n) {
            const EntryGeometry& entry = tensors_.geometry().entries[static_cast<std::size_t>(ids[n].b)];
            const auto [start, i, columns] = place(ids[n], entry, table);
            for (std::int64_t c = 0; c < columns; ++c)
                file.put(group ? 0 : ids[n].b, ids[n].h, start + i, c,
                         table.value[table.at(static_cast<std::int64_t>(n), c)]);
        }
        file.write(folder, name);
    };
    struct Place {
        std::int64_t start, i, columns;
    };
    const auto row = [](const reference::RowId& id, const EntryGeometry& entry, const auto& table) {
        return Place{entry.start_q, id.i, table.cols};
    };
    const auto key = [](const reference::KeyId& id, const EntryGeometry& entry, const auto& table) {
        return Place{entry.start_k, id.j, table.cols};
    };
    write("dq", expected.dq, request.rows, row);
    write("dk", expected.dk, request.keys, key);
    write("dv", expected.dv, request.keys, key);
    write("dbias", expected.dbias, request.rows,
          [](const reference::RowId& id, const EntryGeometry& entry, const auto&) {
              return Place{entry.start_q, id.i, entry.seqlen_k};
          });
    if (args.d_sink != nullptr) {
        ReferenceFile file(tensors_.tensor("d_sink").layout());
        for (std::int64_t h = 0; h < args.shape.nhead_q; ++h)
            file.put(0, 0, 0, h, expected.d_sink.value[static_cast<std::size_t>(h)]);
        file.write(folder, "d_sink");
    }
    return request.rows.size() + request.keys.size();
}

/// As they are stored, because the gradients are those of stored results.
void BwdData::write_forward(const std::filesystem::path& folder) const {
    for (const char* const name : {"o", "lse"}) {
        const GuardedTensor& tensor = tensors_.tensor(name);
        ReferenceFile file(tensor.layout());
        each_cell(spec_of(name), [&](auto b, auto h, auto row, auto c) {
            file.put(tensor.layout().batches == 1 ? 0 : b, h, row, c,
                     reference::decode(tensor.layout().type, tensor.code(b, h, row, c)));
        });
        file.write(folder, name);
    }
}

struct Extents {
    double pairs = 0.0; ///< of all heads
    std::int64_t rows = 0, keys = 0, dbias = 0;
};
Extents extents_of(const Case& c, const Geometry& geometry) {
    Extents extents;
    for (const EntryGeometry& entry : geometry.entries) {
        extents.pairs += static_cast<double>(c.nhead_q * entry.seqlen_q * entry.seqlen_k);
        extents.rows += c.nhead_q * entry.seqlen_q;
        extents.keys += c.nhead_q * entry.seqlen_k;
        if (c.backward.dbias) extents.dbias += c.nhead_q * entry.seqlen_q * entry.seqlen_k;
    }
    return extents;
}

class BwdFamily final : public Family {
  public:
    std::vector<KernelFamily> stages(const Case& c) const override {
        const auto own = stages_of(ApiFamily::bwd);
        std::vector<KernelFamily> stages(own.begin(), own.end());
        if (runs_forward(c)) stages.insert(stages.begin(), KernelFamily::fwd);
        return stages;
    }
    /// Forward stores O and LSE for every backward problem.
    Problem problem_of(KernelFamily stage, Problem whole, const Case&) const override {
        if (stage == KernelFamily::fwd) {
            whole.api_family = ApiFamily::fwd;
            whole.signature.has_lse = true;
            whole.signature.has_dbias = whole.signature.is_deterministic = false;
        }
        whole.signature.family = stage;
        return whole;
    }
    std::unique_ptr<CaseData> allocate(const Case& c, Fp8Flavour flavour) const override {
        return std::make_unique<BwdData>(c, flavour);
    }
    CaseBytes bytes(const Case& c, Fp8Flavour flavour, int threads) const override {
        const Geometry geometry = geometry_of(c, flavour);
        const Extents extents = extents_of(c, geometry);
        constexpr std::int64_t row_name = 24, number = 8, tables = 4, block = 128, work = 40;
        const std::int64_t values = (extents.rows + extents.keys) * c.hdim_q + extents.keys * c.hdim_v;
        // The workspace of the smallest key tile that kernels have.
        KernelConfig smallest;
        smallest.signature.family = main_family;
        smallest.algorithm.tile.n0 = 64;
        CaseBytes bytes;
        bytes.tensors = tensor_bytes<BwdArgs>(c, flavour) + workspace_of(c, geometry, smallest).size.bytes;
        bytes.copies = CaseBytes::copies_of_run * (element_bytes(geometry.types.q, values + extents.dbias) +
                                                   (3 * extents.rows + 2 * extents.keys) * row_name);
        // Four numbers an element of two oracles, their blocks of pairs, and the entry that one of them decodes.
        const std::int64_t table = number * (values + extents.dbias + extents.rows);
        const std::int64_t blocks =
            number * threads *
            (work * block * (block + c.hdim_q + c.hdim_v) +
             (geometry.max_seqlen_q + geometry.max_seqlen_k) * 2 * (c.hdim_q + c.hdim_v));
        bytes.reference = 2 * tables * table + blocks;
        // O and LSE of forward are computed first.
        bytes.values = std::max(table + blocks, number * extents.rows * (c.hdim_q + 2 * c.hdim_v));
        bytes.files = file_bytes<BwdArgs>(c, flavour);
        return bytes;
    }
    /// Of the five products.
    double flops(const Case& c) const override {
        return 2.0 * extents_of(c, geometry_of(c, Fp8Flavour::ocp)).pairs *
               static_cast<double>(3 * c.hdim_q + 2 * c.hdim_v);
    }
    RandomTypes random_types() const override {
        return {{DataType::fp16, DataType::bf16, DataType::fp32}, {}};
    }
};

} // namespace

const Family& bwd_family() {
    static const BwdFamily family;
    return family;
}

} // namespace fmha::harness
