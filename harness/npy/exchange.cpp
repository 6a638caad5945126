#include "harness/npy/exchange.hpp"

#include "dispatcher/types/error.hpp"
#include "reference/numerics/formats.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <limits>

namespace fmha::harness {
namespace {

namespace fs = std::filesystem;

/// Elements of the innermost axis; packed fp4 is rounded up to whole bytes.
std::int64_t inner_extent(const TensorLayout& t) {
    const std::int64_t extent = t.transposed ? t.rows : t.columns;
    return t.type == ElementType::fp4 ? extent + extent % 2 : extent;
}

/// Offset of an element in the file: the axes of `npy_shape` without padding.
std::int64_t file_offset(const TensorLayout& t, std::int64_t b, std::int64_t h, std::int64_t row,
                         std::int64_t col) {
    const std::int64_t outer_extent = t.transposed ? t.columns : t.rows;
    const std::int64_t inner = t.transposed ? row : col, outer = t.transposed ? col : row;
    const std::int64_t middle =
        t.seq_major ? (b * outer_extent + outer) * t.heads + h : (b * t.heads + h) * outer_extent + outer;
    return middle * inner_extent(t) + inner;
}

/// Calls visit(b, h, row, col) for every stored element.
template <class Visit>
void each_element(const TensorLayout& t, Visit&& visit) {
    for (std::int64_t b = 0; b < t.batches; ++b)
        for (std::int64_t h = 0; h < t.heads; ++h)
            for (std::int64_t row = 0; row < t.rows; ++row)
                for (std::int64_t col = 0; col < t.columns; ++col) visit(b, h, row, col);
}

NpyType stored_as(ElementType type) {
    switch (type) {
    case ElementType::fp32:
        return NpyType::float32;
    case ElementType::fp16:
        return NpyType::float16;
    case ElementType::bf16:
        return NpyType::uint16;
    case ElementType::int32:
        return NpyType::int32;
    default:
        return NpyType::uint8;
    }
}

/// Whose file is read. Those of a reference are float64, every one of its outputs, and must not pass for a kernel's.
enum class FileOf : std::uint8_t { input, output };

/// float64 is accepted for fp32 of inputs and rounded, uint16 for fp16 as its bit pattern.
bool accepts(ElementType type, NpyType file, FileOf of) {
    return file == stored_as(type) ||
           (type == ElementType::fp32 && file == NpyType::float64 && of == FileOf::input) ||
           (type == ElementType::fp16 && file == NpyType::uint16);
}

std::string accepted_names(ElementType type, FileOf of) {
    std::string text = npy_name(stored_as(type));
    if (type == ElementType::fp32 && of == FileOf::input) text += " or float64";
    if (type == ElementType::fp16) text += " or uint16 (bit patterns)";
    if (type == ElementType::bf16) text += " (bit patterns)";
    return text;
}

fs::path file_of(const fs::path& folder, const std::string& name) {
    return folder / (name + ".npy");
}

NpyArray read_checked(const fs::path& file, ElementType type, FileOf of,
                      const std::vector<std::int64_t>& shape) {
    NpyArray array = read_npy(file);
    if (!accepts(type, array.type, of)) {
        const bool of_reference = of == FileOf::output && array.type == NpyType::float64;
        throw InputError(fmt::format("{}: dtype is {}{}; allowed: {}", file.string(), npy_name(array.type),
                                     of_reference ? ", as fmha reference writes it and no kernel" : "",
                                     accepted_names(type, of)));
    }
    // One value may come as a scalar or as an array of one.
    const bool one = array.elements() == 1 && shape.empty();
    if (array.shape != shape && !one)
        throw InputError(fmt::format("{}: shape is {}, the case needs {}", file.string(),
                                     shape_text(array.shape), shape_text(shape)));
    return array;
}

std::uint32_t code_at(const NpyArray& array, ElementType type, std::int64_t index) {
    if (array.type != NpyType::float64) return load_code(array.bytes.data(), type, index);
    double value = 0.0;
    std::memcpy(&value, array.bytes.data() + index * 8, 8);
    return reference::encode(type, value);
}

void read_tensor(const fs::path& folder, const std::string& name, FileOf of, GuardedTensor& tensor) {
    const TensorLayout& layout = tensor.layout();
    const NpyArray array = read_checked(file_of(folder, name), layout.type, of, npy_shape(layout));
    each_element(layout, [&](auto b, auto h, auto row, auto col) {
        tensor.set_code(b, h, row, col, code_at(array, layout.type, file_offset(layout, b, h, row, col)));
    });
}

NpyArray blank(NpyType type, std::vector<std::int64_t> shape) {
    NpyArray array{type, std::move(shape), {}};
    array.bytes.resize(static_cast<std::size_t>(array.elements() * npy_bytes(type)));
    return array;
}

void write_tensor(const fs::path& folder, const std::string& name, const GuardedTensor& tensor) {
    const TensorLayout& layout = tensor.layout();
    NpyArray array = blank(stored_as(layout.type), npy_shape(layout));
    each_element(layout, [&](auto b, auto h, auto row, auto col) {
        store_code(array.bytes.data(), layout.type, file_offset(layout, b, h, row, col),
                   tensor.code(b, h, row, col));
    });
    write_npy(file_of(folder, name), array);
}

bool can_be_nan(ElementType type) {
    return type != ElementType::int32 && type != ElementType::uint8;
}

/// Why `value` cannot stand in an input: L-5 for NaN, a scale that is NaN is none, and for scores, which are finite; E-2 for the
/// bias. "" where it can.
std::string_view objection(const TensorSpec& spec, double value) {
    if (std::isnan(value)) return "logical inputs must not be (L-5)";
    if (!std::isinf(value)) return {};
    if (spec.name == "bias" && value > 0.0) return "a bias is finite or -inf (E-2)";
    const bool in_scores = spec.name == "q" || spec.name == "k" || spec.name == "alibi_slopes";
    // Append-KV copies what it updates, whatever it is.
    return in_scores && spec.flow == Flow::in ? "scores must be finite (L-5)" : std::string_view();
}

/// Refuses what has no meaning.
void check_given_values(const fs::path& folder, const TensorSpec& spec, const GuardedTensor& tensor) {
    if (!can_be_nan(spec.layout.type)) return;
    spec.logical([&](const RowRun& run) {
        // All of a row is read of which a part is written.
        const std::int64_t columns = spec.flow == Flow::in_out ? spec.layout.columns : run.columns;
        for (std::int64_t column = run.first; column < columns; ++column) {
            const double value =
                reference::decode(spec.layout.type, tensor.code(run.b, run.h, run.row, column));
            if (const auto why = objection(spec, value); !why.empty())
                throw InputError(fmt::format("{}: entry {} head {} row {} column {} is {}; {}",
                                             file_of(folder, spec.name).string(), run.b, run.h, run.row,
                                             column, std::isnan(value) ? "NaN" : fmt::format("{}", value),
                                             why));
        }
    });
}

/// Calls visit(spec) for every input that other programs bring or take: a cache that begins without content is none.
template <class Visit>
void each_input(const TensorSet& tensors, Visit&& visit) {
    for (const TensorSpec& spec : tensors.specs())
        if (spec.exchanged && (spec.flow == Flow::in || (spec.flow == Flow::in_out && spec.fill)))
            visit(spec);
}

/// Calls visit(spec, name of the file) for every output.
template <class Visit>
void each_output(const TensorSet& tensors, Visit&& visit) {
    for (const TensorSpec& spec : tensors.specs())
        if (spec.exchanged && spec.is_output())
            visit(spec, spec.flow == Flow::out ? spec.name : updated_name(spec.name));
}

} // namespace

std::string updated_name(const std::string& name) {
    return name + "_out";
}

std::vector<std::int64_t> npy_shape(const TensorLayout& layout) {
    if (layout.axes == 0) return {};
    if (layout.axes == 1) return {layout.columns};
    if (layout.axes == 2) return {layout.rows, layout.columns};
    std::vector<std::int64_t> shape{layout.batches, layout.heads,
                                    layout.transposed ? layout.columns : layout.rows};
    if (layout.seq_major) std::swap(shape[1], shape[2]);
    if (layout.axes == 4)
        shape.push_back(element_bytes(layout.type, inner_extent(layout)) / element_bytes(layout.type));
    return shape;
}

void read_inputs(const fs::path& folder, TensorSet& tensors,
                 const std::function<bool(const std::string&)>& placed) {
    if (!fs::is_directory(folder)) throw InputError(folder.string() + ": is not a folder");
    each_input(tensors, [&](const TensorSpec& spec) {
        GuardedTensor& tensor = tensors.tensor(spec.name);
        read_tensor(folder, spec.name, FileOf::input, tensor);
        if (!placed || !placed(spec.name)) check_given_values(folder, spec, tensor);
    });
}

bool read_if_there(const fs::path& folder, const std::string& name, TensorSet& tensors) {
    // A link that leads nowhere is there, and cannot be opened.
    if (!fs::exists(fs::symlink_status(file_of(folder, name)))) return false;
    read_tensor(folder, name, FileOf::input, tensors.tensor(name));
    return true;
}

void read_outputs(const fs::path& folder, TensorSet& tensors) {
    each_output(tensors, [&](const TensorSpec& spec, const std::string& file) {
        read_tensor(folder, file, FileOf::output, tensors.tensor(spec.name));
    });
}

void write_outputs(const fs::path& folder, const TensorSet& tensors) {
    each_output(tensors, [&](const TensorSpec& spec, const std::string& file) {
        write_tensor(folder, file, tensors.tensor(spec.name));
    });
}

void write_inputs(const fs::path& folder, const TensorSet& tensors) {
    each_input(tensors,
               [&](const TensorSpec& spec) { write_tensor(folder, spec.name, tensors.tensor(spec.name)); });
}

ReferenceFile::ReferenceFile(const TensorLayout& layout)
    : layout_(layout), array_(blank(NpyType::float64, npy_shape(layout))) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (std::int64_t i = 0; i < array_.elements(); ++i) std::memcpy(array_.bytes.data() + i * 8, &nan, 8);
}

void ReferenceFile::put(std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t col, double value) {
    std::memcpy(array_.bytes.data() + file_offset(layout_, b, h, row, col) * 8, &value, 8);
}

void ReferenceFile::write(const fs::path& folder, const std::string& name) const {
    write_npy(file_of(folder, name), array_);
}

} // namespace fmha::harness
