#pragma once

#include "dispatcher/types/kernel_instance.hpp"
#include "dispatcher/types/numerics.hpp"
#include "dispatcher/types/problem.hpp"
#include "harness/cases/case.hpp"
#include "harness/data/needed_rows.hpp"
#include "harness/data/tensor_set.hpp"
#include "harness/gates/judge.hpp"
#include "harness/gates/outputs.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The one place where the harness branches by API family: a family is a `Family` and the objects that it hands out. Running, judging,
/// exchange of files and reports know no family. Questions with a short answer are columns of `dispatcher/types/family_traits.hpp`.
namespace fmha::harness {

/// Bytes that a case takes, without a kernel's own.
struct CaseBytes {
    /// Of outputs, in a run: the first launch, the present one, a third when they differ, and one while stray writes are looked for.
    static constexpr std::int64_t copies_of_run = 4;

    std::int64_t tensors = 0;   ///< all of them, small arrays among them
    std::int64_t copies = 0;    ///< `copies_of_run` of the outputs
    std::int64_t reference = 0; ///< rows and work of both oracles
    std::int64_t values = 0;    ///< of the values alone that `write_reference` computes
    FileBytes files{};

    /// While kernels run and are judged.
    std::int64_t total() const { return tensors + copies + reference; }
};

/// The verdict of the gates on the outputs of one stage.
struct StageVerdict {
    Judgement judgement;
    std::int64_t rows = 0; ///< that the reference judged
    double reference_seconds = 0.0;
    /// Why the numbers cannot be believed either way; empty when they can.
    std::string mistrust;
};

/// The reference of one case, which must outlive this together with its memory.
class CaseExpectation {
  public:
    virtual ~CaseExpectation() = default;
    /// Distance of the two oracles in units of the agreement bound (B.1), on the case's inputs. 0 where the case has none
    /// that could be compared.
    virtual double oracle_disagreement() = 0;
    /// Judges the outputs of `stage` with `numerics`. A stage that reads what an earlier one stored is judged on that memory, so
    /// the memory must still hold it.
    virtual StageVerdict judge(KernelFamily stage, const Outputs& outputs, const Numerics& numerics,
                               InputOrigin inputs) = 0;
    /// Calls visit with the limits of each of `outputs` around its exact values, after `judge` with the same arguments. Nothing
    /// where a family's limits are made otherwise.
    virtual void each_bounded(KernelFamily, const Outputs&, const std::function<void(const Bounded&)>&) {}
};

/// One case of a family in host memory.
class CaseData {
  public:
    virtual ~CaseData() = default;
    virtual TensorSet& tensors() = 0;
    /// Gives inputs what others may read in them and ours must not: before they are written as files.
    virtual void complete_inputs() {}
    /// Lays out workspaces, which depend on the kernels that are about to run, in launch order. Called before the first launch
    /// of every candidate; afterwards the tensors are filled anew.
    virtual void prepare(std::span<const KernelConfig>) {}
    /// The arguments of all stages; they point into the tensors.
    virtual Invocation invocation() const = 0;
    /// The arguments of `stage`, in a family whose stages belong to several APIs.
    virtual Invocation invocation_of(KernelFamily) const { return invocation(); }
    /// Calls of `stage` that must leave the bits that its one call leaves; empty where the case is not divided.
    virtual std::vector<Invocation> parts(KernelFamily) const { return {}; }
    /// Memory of the tensors that must be 0 whenever the first stage begins, and is not when the last one has ended.
    virtual std::span<unsigned char> cleared() { return {}; }
    /// The rows that `outputs` and `expectation` are about, in data of few rows; empty = all.
    virtual std::span<const reference::RowId> few_rows() const { return {}; }
    /// A copy of everything that `stage` had to write.
    virtual Outputs outputs(KernelFamily stage) const = 0;
    /// Whether `stage` may write the tensor `name`, which is no input. A family of one stage writes them all.
    virtual bool writes(KernelFamily, std::string_view) const { return true; }
    /// Whether `stage` promises the same bits in its output `name` whenever it runs on the same values (W-16).
    virtual bool repeats(KernelFamily, std::string_view) const { return true; }
    /// `threads`: of the oracles; 0 = all of the machine.
    virtual std::unique_ptr<CaseExpectation> expectation(int threads) const = 0;
    /// Writes the reference's outputs to `folder` as .npy files (cases/README.md), 64-bit before any rounding. `threads` as
    /// above. Returns the number of rows.
    virtual std::size_t write_reference(const std::filesystem::path& folder, int threads) const = 0;
};

/// The data types of random problems. One that stands twice is drawn twice as often.
struct RandomTypes {
    std::vector<DataType> types;
    std::vector<QScale> scales_of_8_bits; ///< of the 8-bit types among them; empty = those of the plain case
};

/// One API family, without state.
class Family {
  public:
    virtual ~Family() = default;
    /// The stages that a case runs, in launch order.
    virtual std::vector<KernelFamily> stages(const Case& c) const = 0;
    /// The problem that `stage` solves as a part of `whole`, the problem of `c`. A family whose cases run stages of other APIs says
    /// what these solve.
    virtual Problem problem_of(KernelFamily stage, Problem whole, const Case&) const {
        whole.signature.family = stage;
        return whole;
    }
    /// Lays out, poisons and fills. `c` must outlive the result. Throws InputError for a case that cannot be laid out and
    /// NoRoomForTensor.
    virtual std::unique_ptr<CaseData> allocate(const Case& c, Fp8Flavour flavour) const = 0;
    /// The same for few rows of the outputs, spread over entries, heads and positions, for a target that runs single tiles. What neither they nor the other rows of their tiles read stays poison. All rows where the family has no
    /// such sample.
    virtual std::unique_ptr<CaseData> allocate_few_rows(const Case& c, Fp8Flavour flavour,
                                                        const RowTile&) const {
        return allocate(c, flavour);
    }
    /// `threads`: those of the reference. Throws InputError for a case that cannot be laid out.
    virtual CaseBytes bytes(const Case& c, Fp8Flavour flavour, int threads) const = 0;
    /// The same of `allocate_few_rows`: the tensors are whole, and only a part of them is copied and computed.
    virtual CaseBytes bytes_of_few_rows(const Case& c, Fp8Flavour flavour, int threads) const {
        return bytes(c, flavour, threads);
    }
    /// Floating-point operations of a case, with hidden keys.
    virtual double flops(const Case& c) const = 0;
    /// No types: no random problems.
    virtual RandomTypes random_types() const { return {}; }
};

/// Throws InputError for a family that nothing computes yet.
const Family& family_of(ApiFamily api);

} // namespace fmha::harness
