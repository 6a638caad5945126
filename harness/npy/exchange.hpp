#pragma once

#include "harness/data/tensor_set.hpp"
#include "harness/npy/npy.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

/// Tensors in and out as `.npy` files, so that kernels written anywhere can be judged. Names, shapes and dtypes are those
/// of cases/README.md. Lengths and other arrays that follow from the case are not exchanged.
namespace fmha::harness {

/// The extents of a tensor's file, in memory order without padding; packed fp4 counts bytes in its last axis.
std::vector<std::int64_t> npy_shape(const TensorLayout& layout);

/// Reads every input of the case (q, k, v, bias, *_descale, alibi_slopes, sink_logits …) from `folder` into `tensors`, those
/// that are updated in place among them if the case gives them content.
/// Throws InputError that names the file, its value and the allowed ones: missing, another dtype or shape, NaN inside
/// a logical range of this case, but for tensors for which `placed(name)` is true: what they hold is where other files say.
void read_inputs(const std::filesystem::path& folder, TensorSet& tensors,
                 const std::function<bool(const std::string&)>& placed = {});

/// Whether `folder` has a file of the tensor `name`, which is then read into it, whatever numbers it holds. Throws InputError for another
/// dtype or shape.
bool read_if_there(const std::filesystem::path& folder, const std::string& name, TensorSet& tensors);

/// The file of a tensor that is updated in place, as it is afterwards.
std::string updated_name(const std::string& name);

/// Reads every output of the case: o, and lse and randval where it has them; of a tensor that is updated in place, NAME_out. Throws
/// InputError like `read_inputs`; a file of float64 is that of a reference and no kernel's output.
void read_outputs(const std::filesystem::path& folder, TensorSet& tensors);

/// Writes the outputs that `read_outputs` reads.
void write_outputs(const std::filesystem::path& folder, const TensorSet& tensors);

/// Writes the inputs that `read_inputs` reads.
void write_inputs(const std::filesystem::path& folder, const TensorSet& tensors);

/// The file of an output as a reference computes it, float64 for every type: NaN where nothing was put.
class ReferenceFile {
  public:
    /// The file has the extents of `layout`.
    explicit ReferenceFile(const TensorLayout& layout);
    void put(std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t col, double value);
    void write(const std::filesystem::path& folder, const std::string& name) const;

  private:
    TensorLayout layout_;
    NpyArray array_;
};

} // namespace fmha::harness
