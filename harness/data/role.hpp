#pragma once

#include "harness/data/fwd_fill.hpp"
#include "harness/data/geometry.hpp"
#include "harness/data/needed_rows.hpp"
#include "harness/data/tensor_set.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

namespace fmha::harness {

/// All that decides the tensors of a case.
struct DataSource {
    DataSource(const Case& of, Fp8Flavour flavour)
        : c(of), geometry(geometry_of(of, flavour)), fill(of, geometry.types) {}

    const Case& c;
    Geometry geometry;
    FwdFill fill;
    NeededRows
        needed; ///< of q, k, v and outputs of attention; the rest stays poison, and belongs to no kernel
};

/// Calls `visit(b, entry)` for every entry of the batch.
template <class Visit>
void each_entry(const DataSource& source, Visit&& visit) {
    for (std::int64_t b = 0; b < source.c.batch; ++b)
        visit(b, source.geometry.entries[static_cast<std::size_t>(b)]);
}

/// One line of a family's table of tensors: a tensor or small array of its arguments.
template <class Args>
struct Role {
    std::string_view name;
    Flow flow = Flow::in;
    bool (*present)(const Case&);
    TensorLayout (*layout)(const Case&, const Geometry&);
    void (*fill)(const DataSource&, GuardedTensor&); ///< null: stays poison
    void (*logical)(const DataSource&, const RowVisit&);
    void (*bind)(Args&, const GuardedTensor&);
    /// Content that another program may bring as a .npy file; lengths and the like follow from the case.
    bool exchanged = true;
};

/// The tables, specialised by each family: its tensors, and the arguments that are no tensors.
template <class Args>
std::span<const Role<Args>> roles_of();
template <class Args>
void bind_values(const DataSource& source, Args& args);

/// The layout of a tensor of the case, with the batch stride that the case asks for where it names this one.
template <class Args>
TensorLayout layout_of(const Role<Args>& role, const Case& c, const Geometry& g) {
    const TensorLayout layout = role.layout(c, g);
    return role.name == c.wide_tensor ? widened(c, layout) : layout;
}

/// The tensors of a case. Throws InputError where it names a wide tensor that cannot be one.
template <class Args>
std::vector<const Role<Args>*> roles_of_case(const Case& c, const Geometry& g) {
    std::vector<const Role<Args>*> roles;
    std::vector<std::string_view> strided;
    for (const Role<Args>& role : roles_of<Args>()) {
        if (!role.present(c)) continue;
        roles.push_back(&role);
        if (!c.wide_tensor.empty() && role.layout(c, g).batch_stride > 0) strided.push_back(role.name);
    }
    if (!c.wide_tensor.empty()) require_wide_tensor(c, strided);
    return roles;
}

/// All memory of one case of a family in host memory.
template <class Args>
class FamilyTensors {
  public:
    /// Lays out, poisons and fills. `c` must outlive this. Throws InputError for a case that cannot be laid out and
    /// NoRoomForTensor.
    FamilyTensors(const Case& c, Fp8Flavour flavour) : source_(c, flavour), set_(specs(source_)) {
        set_.refill(Poison::nan);
    }
    /// The same of those rows alone that `needed` chooses by the arguments, of which the small arrays are not filled yet.
    FamilyTensors(const Case& c, Fp8Flavour flavour, const std::function<NeededRows(const Args&)>& needed)
        : source_(c, flavour), set_(specs(source_)) {
        source_.needed = needed(args());
        set_.refill(Poison::nan);
    }
    FamilyTensors(const FamilyTensors&) = delete;
    FamilyTensors& operator=(const FamilyTensors&) = delete;
    ~FamilyTensors() = default;

    /// Valid until this is destroyed.
    Args args() const {
        Args args;
        bind_values(source_, args);
        for (const Role<Args>& role : roles_of<Args>())
            if (role.present(source_.c)) role.bind(args, set_.tensor(role.name));
        return args;
    }

    TensorSet& set() { return set_; }
    const TensorSet& set() const { return set_; }
    const DataSource& source() const { return source_; }
    const Case& of_case() const { return source_.c; }
    const Geometry& geometry() const { return source_.geometry; }
    const FwdFill& fill() const { return source_.fill; }
    GuardedTensor& tensor(std::string_view name) { return set_.tensor(name); }
    const GuardedTensor& tensor(std::string_view name) const { return set_.tensor(name); }
    bool has(std::string_view name) const { return set_.has(name); }

    /// See TensorSet.
    void refill(Poison poison) { set_.refill(poison); }
    std::vector<MemoryBlock> memory() const { return set_.memory(); }
    std::uint64_t input_checksum() const { return set_.input_checksum(); }
    std::optional<std::string> stray_write() { return set_.stray_write(); }

  private:
    static std::vector<TensorSpec> specs(const DataSource& source) {
        std::vector<TensorSpec> specs;
        for (const Role<Args>* const found : roles_of_case<Args>(source.c, source.geometry)) {
            const Role<Args>& role = *found;
            TensorSpec spec;
            spec.name = role.name;
            spec.flow = role.flow;
            spec.layout = layout_of(role, source.c, source.geometry);
            if (role.fill != nullptr)
                spec.fill = [&source, &role](GuardedTensor& tensor) { role.fill(source, tensor); };
            spec.logical = [&source, &role](const RowVisit& visit) { role.logical(source, visit); };
            spec.exchanged = role.exchanged;
            specs.push_back(std::move(spec));
        }
        return specs;
    }

    DataSource source_; ///< before the set, whose functions refer to it
    TensorSet set_;
};

/// Bytes that the tensors of a case take, without allocating them.
template <class Args>
std::int64_t tensor_bytes(const Case& c, Fp8Flavour flavour) {
    const Geometry geometry = geometry_of(c, flavour);
    std::int64_t bytes = 0;
    for (const Role<Args>* const role : roles_of_case<Args>(c, geometry))
        bytes += allocated_bytes(layout_of(*role, c, geometry));
    return bytes;
}

/// The same of its files.
template <class Args>
FileBytes file_bytes(const Case& c, Fp8Flavour flavour) {
    constexpr std::int64_t reference_element = 8, code = 4;
    const Geometry geometry = geometry_of(c, flavour);
    FileBytes bytes;
    for (const Role<Args>* const role : roles_of_case<Args>(c, geometry)) {
        if (!role->exchanged) continue;
        const TensorLayout layout = layout_of(*role, c, geometry);
        const std::int64_t elements = layout.batches * layout.heads * layout.rows * layout.columns;
        bytes.largest = std::max(bytes.largest, element_bytes(layout.type, elements));
        if (role->flow == Flow::out || role->flow == Flow::in_out)
            bytes.reference += reference_element * elements;
        if (role->flow == Flow::in_out)
            bytes.updated += element_bytes(layout.type, elements) + code * elements;
    }
    return bytes;
}

} // namespace fmha::harness
