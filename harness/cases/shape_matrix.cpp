#include "harness/cases/shape_matrix.hpp"

#include "dispatcher/types/family_traits.hpp"
#include "harness/cases/case_enums.hpp"
#include "harness/cases/case_file.hpp"
#include "harness/cases/case_name.hpp"
#include "harness/cases/check_form.hpp"
#include "harness/cases/yaml_document.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/types/did_you_mean.hpp"
#include "dispatcher/types/element.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/json.hpp"
#include "dispatcher/types/type_classes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>

namespace fmha::harness {
namespace {

/// One axis of a test; the order of the table is the order of the product, first slowest.
struct MatrixAxis {
    std::string_view key, fallback;
    void (*set)(const YAML::Node& value, Case& into);
};

/// Throws YAML::Exception for text that is none of `first` (the default) … as the other readers do.
BiasType bias_of(const std::string& text, const YAML::Node& value) {
    if (text == "none") return BiasType::no_bias;
    if (text == "elementwise") return BiasType::elementwise;
    if (text == "alibi") return BiasType::alibi;
    throw YAML::RepresentationException(value.Mark(), "expected none, elementwise or alibi");
}

MaskType mask_of(const std::string& text, const YAML::Node& value) {
    if (text == "no_mask") return MaskType::no_mask;
    if (text == "top_left") return MaskType::top_left;
    if (text == "bottom_right") return MaskType::bottom_right;
    throw YAML::RepresentationException(value.Mark(), "expected no_mask, top_left or bottom_right");
}

std::int64_t whole_number(const YAML::Node& value) {
    std::int64_t number = 0;
    if (!YAML::convert<std::int64_t>::decode(value, number))
        throw YAML::RepresentationException(value.Mark(), "expected a whole number");
    return number;
}

const std::array<MatrixAxis, 12>& axes() {
    using N = const YAML::Node&;
    static const std::array<MatrixAxis, 12> table{{
        {"batch", "1", [](N v, Case& c) { c.batch = whole_number(v); }},
        {"seqlen_q", "1024", [](N v, Case& c) { c.seqlen_q = {whole_number(v)}; }},
        {"seqlen_k", "1024", [](N v, Case& c) { c.seqlen_k = {whole_number(v)}; }},
        {"nhead_q", "16", [](N v, Case& c) { c.nhead_q = whole_number(v); }},
        {"nhead_k", "16", [](N v, Case& c) { c.nhead_k = whole_number(v); }},
        {"hdim_q", "128", [](N v, Case& c) { c.hdim_q = whole_number(v); }},
        {"hdim_v", "128", [](N v, Case& c) { c.hdim_v = whole_number(v); }},
        {"dtype", "fp16",
         [](N v, Case& c) {
             const auto type = parse_enum<DataType>(v.as<std::string>());
             if (!type)
                 throw YAML::RepresentationException(v.Mark(), "expected " + allowed_names<DataType>());
             c.data_type = *type;
             const bool float_type = *type == DataType::fp32 || is_half(*type);
             c.qscale = float_type ? QScale::no_scale : QScale::pertensor;
         }},
        {"mask", "no_mask",
         [](N v, Case& c) {
             c.mask = mask_of(v.as<std::string>(), v);
             c.window_right = c.mask == MaskType::no_mask ? -1 : 0;
         }},
        {"bias", "none",
         [](N v, Case& c) {
             c.bias = bias_of(v.as<std::string>(), v);
             // Shared by batch and heads: the file gives no rank, and a full bias of its longest shapes is no
             // test.
             c.bias_rank = c.bias == BiasType::no_bias ? Case{}.bias_rank : 0;
         }},
        {"dropout", "0.0",
         [](N v, Case& c) {
             if (!YAML::convert<double>::decode(v, c.p_drop) || !std::isfinite(c.p_drop))
                 throw YAML::RepresentationException(v.Mark(), "expected a finite number");
             c.dropout_seed = c.p_drop > 0 ? 123 : 0;
             c.dropout_offset = c.p_drop > 0 ? 1024 : 0;
         }},
        {"lse", "false",
         [](N v, Case& c) {
             if (!YAML::convert<bool>::decode(v, c.lse))
                 throw YAML::RepresentationException(v.Mark(), "expected true or false");
         }},
    }};
    return table;
}

/// A part of a file, whose tests are shapes of one family.
struct Section {
    std::string_view name;
    ApiFamily family;
    std::string_view prefix; ///< of the names of its tests
    bool optional;           ///< a file may lack it
};

constexpr std::array<Section, 2> sections{{{"forward_tests", ApiFamily::fwd, "", false},
                                           {"backward_tests", ApiFamily::bwd, "backward_tests/", true}}};

const Section& section_of(ApiFamily family) {
    const auto found = std::ranges::find(sections, family, &Section::family);
    if (found == sections.end())
        throw InputError(fmt::format("a shape matrix has no section of {}", to_string(family)));
    return *found;
}

/// The section whose prefix a test's name begins with.
const Section& section_of_test(std::string_view name) {
    return *std::ranges::find_if(sections.rbegin(), sections.rend(),
                                 [&](const Section& section) { return name.starts_with(section.prefix); });
}

void predict(Case& shape, const KernelDims& dims) {
    const auto expect = [&shape](Expectation expectation, const char* rule) {
        shape.expect = expectation;
        shape.expect_rule = rule;
    };
    if (shape.nhead_k <= 0 || shape.nhead_q % shape.nhead_k != 0)
        expect(Expectation::invalid_problem, "H-1");
    else if (shape.hdim_q % 8 != 0 || shape.hdim_v % 8 != 0)
        expect(Expectation::invalid_problem, "H-2");
    else if (traits_of(shape.family).gradients &&
             element_bits(element_types(shape.data_type, Fp8Flavour::ocp).q) <= 8)
        expect(Expectation::invalid_problem, "20.1");
    if (shape.expect != Expectation::pass) return;
    const auto found = dims.find(shape.data_type);
    if (found == dims.end()) return;
    const auto any = [&](const auto& takes) { return std::ranges::any_of(found->second, takes); };
    if (!any([&](const auto& kernel) { return kernel.first >= shape.hdim_q; }))
        expect(Expectation::no_kernel, "hdim_q");
    else if (!any([&](const auto& kernel) { return kernel.second >= shape.hdim_v; }))
        expect(Expectation::no_kernel, "hdim_v");
    else if (!any([&](const auto& kernel) {
                 return kernel.first >= shape.hdim_q && kernel.second >= shape.hdim_v;
             }))
        expect(Expectation::no_kernel, "");
}

/// Rows to sample instead of computing the whole reference: above about a second of it, or of filling keys and values for several runs.
bool is_large(const Case& shape) {
    const double products = traits_of(shape.family).gradients ? 5.0 : 2.0;
    const double keys = static_cast<double>(shape.batch) * static_cast<double>(shape.seqlen_k[0]);
    const double flops = 2.0 * products * keys * static_cast<double>(shape.nhead_q) *
                         static_cast<double>(shape.seqlen_q[0]) * static_cast<double>(shape.hdim_q);
    const double elements =
        keys * static_cast<double>(shape.nhead_k) * static_cast<double>(shape.hdim_q + shape.hdim_v);
    return flops > 2e9 || elements > 5e6;
}

/// More than any matrix has; axes multiply, so that a file of a few lines could ask for more than fits into memory.
constexpr std::size_t most_in_a_file = 200'000;

class MatrixReader {
  public:
    explicit MatrixReader(const std::filesystem::path& path) : where_(path.generic_string()) {
        try {
            top_ = one_document(system::read_file(path), where_);
        } catch (const YAML::Exception& error) {
            throw InputError(fmt::format("{}: not valid YAML: {}", where_, error.what()));
        }
        if (!top_.IsMap()) throw InputError(fmt::format("{}: expected a map with forward_tests", where_));
        std::vector<std::string_view> keys{"test_categories", "execution_settings"};
        for (const Section& section : sections) keys.push_back(section.name);
        check_keys(top_, keys, where_);
    }

    std::vector<Case> shapes(Tier highest, const KernelDims& dims, ApiFamily family) {
        const Section& section = section_of(family);
        std::vector<Case> result;
        if (lacks(section)) return result;
        for (auto& [test, shape] : shapes_of(section, highest)) {
            finish(shape, fmt::format("{}{}", section.prefix, test), dims);
            result.push_back(std::move(shape));
        }
        return result;
    }

    std::vector<MatrixCount> counts(Tier highest) {
        std::vector<MatrixCount> all;
        for (const Section& section : sections)
            all.push_back(
                {section.name, section.family,
                 lacks(section) ? 0 : static_cast<std::int64_t>(shapes_of(section, highest).size())});
        return all;
    }

    /// An empty case of the test called `name`; InputError when the file has none of that name.
    Case blank_of(std::string name) const {
        const Section& section = section_of_test(name);
        name.erase(0, section.prefix.size());
        for (const auto& tier : top_[std::string(section.name)]) {
            if (!tier.second.IsSequence()) continue;
            for (const auto& test : tier.second)
                if (test.IsMap() && test["name"] && test["name"].IsScalar() && test["name"].Scalar() == name)
                    return blank(test, name, section);
        }
        throw InputError(fmt::format("{}: {} has no test called {}", where_, section.name, name));
    }

  private:
    /// Shapes with the names of their tests.
    using NamedShapes = std::vector<std::pair<std::string, Case>>;

    bool lacks(const Section& section) { return section.optional && !top_[std::string(section.name)]; }

    NamedShapes shapes_of(const Section& of, Tier highest) {
        NamedShapes result;
        const auto section = top_[std::string(of.name)];
        if (!section || !section.IsMap())
            throw InputError(fmt::format("{}: {} is missing or not a map of tiers", where_, of.name));
        static constexpr auto tier_names = [] {
            std::array<std::string_view, EnumTable<Tier>::names.size()> names;
            std::ranges::transform(EnumTable<Tier>::names, names.begin(), &EnumName<Tier>::name);
            return names;
        }();
        check_keys(section, tier_names, fmt::format("{}: {}", where_, of.name));
        for (const auto& [tier, name] : EnumTable<Tier>::names) {
            if (tier > highest) break;
            const auto tests = section[std::string(name)];
            if (!tests) continue;
            if (!tests.IsSequence())
                throw InputError(fmt::format("{}: {}.{}: expected a list of tests", where_, of.name, name));
            for (const auto& test : tests) add_test(test, tier, of, result);
        }
        return result;
    }

    /// `node` as text; InputError, which calls it `what`, when it is none.
    static std::string word(const YAML::Node& node, std::string_view what, const std::string& at) {
        if (!node.IsScalar()) throw InputError(fmt::format("{}: {} must be a single text", at, what));
        return node.Scalar();
    }

    /// The printed names of shapes are read back, where "#2" is the second of equal ones.
    void check_name(const std::string& name, const Section& section) const {
        const auto refuse = [&](std::string_view why) {
            throw InputError(fmt::format("{}: name: {} is not allowed: {}", where_, Json(name).dump(), why));
        };
        if (std::ranges::any_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7F || c == '#'; }))
            refuse("the name of a test has no \"#\" and no control characters");
        if (&section_of_test(fmt::format("{}{}", section.prefix, name)) != &section)
            refuse("names of shapes that begin like this are of another section");
    }

    Case blank(const YAML::Node& test, const std::string& name, const Section& section) const {
        Case shape;
        shape.family = section.family;
        const auto description = test["description"];
        shape.about = description ? word(description, "description", where_ + ": " + name) : name;
        shape.labels = {"matrix"};
        return shape;
    }

    void check_keys(const YAML::Node& map, std::span<const std::string_view> known,
                    const std::string& at) const {
        std::vector<std::string> seen;
        for (const auto& entry : map) {
            const auto key = word(entry.first, "a key", at);
            if (std::ranges::find(known, key) == known.end()) {
                const std::string hint = did_you_mean(key, known);
                throw InputError(
                    fmt::format("{}: {} is not a key of a shape matrix{}", at, key,
                                hint.empty() ? fmt::format("; allowed: {}", fmt::join(known, ", ")) : hint));
            }
            if (std::ranges::find(seen, key) != seen.end())
                throw InputError(fmt::format("{}: key \"{}\" appears twice", at, key));
            seen.push_back(key);
        }
    }

    void add_test(const YAML::Node& test, Tier tier, const Section& section, NamedShapes& into) const {
        if (!test.IsMap() || !test["name"] || !test["name"].IsScalar())
            throw InputError(
                fmt::format("{}: line {}: a test is a map with a name", where_, test.Mark().line + 1));
        const auto name = word(test["name"], "name", where_);
        check_name(name, section);
        const std::string at = where_ + ": " + name;
        std::vector<std::string_view> known{"name", "description", "layout", "has_dbias", "is_deterministic"};
        for (const auto& axis : axes()) known.push_back(axis.key);
        check_keys(test, known, at);

        auto shape = blank(test, name, section);
        shape.tier = tier;
        std::size_t room = most_in_a_file - std::min(most_in_a_file, into.size());
        for (const auto& axis : axes())
            if (const auto values = test[std::string(axis.key)]; values && values.IsSequence())
                room /= std::max<std::size_t>(values.size(), 1);
        if (room == 0) throw InputError(fmt::format("{}: more than {} shapes", at, most_in_a_file));
        expand(test, at, name, 0, shape, into);
    }

    void expand(const YAML::Node& test, const std::string& at, const std::string& name, std::size_t depth,
                const Case& so_far, NamedShapes& into) const {
        if (depth == axes().size()) {
            into.emplace_back(name, so_far);
            return;
        }
        const auto& axis = axes()[depth];
        const auto values = test[std::string(axis.key)];
        if (!values) {
            auto next = so_far;
            axis.set(YAML::Load(std::string(axis.fallback)), next);
            return expand(test, at, name, depth + 1, next, into);
        }
        if (!values.IsSequence() || values.size() == 0)
            throw InputError(
                fmt::format("{}: {}: expected a list of values, as in [{}]", at, axis.key, axis.fallback));
        for (const auto& value : values) {
            auto next = so_far;
            try {
                axis.set(value, next);
            } catch (const YAML::Exception& error) {
                throw InputError(fmt::format("{}: {}: {} is not allowed: {}", at, axis.key,
                                             value.IsScalar() ? value.Scalar() : "a nested value",
                                             error.msg));
            }
            expand(test, at, name, depth + 1, next, into);
        }
    }

    void finish(Case& shape, const std::string& name, const KernelDims& dims) {
        if (traits_of(shape.family).gradients) {
            shape.lse = Case{}.lse; // an input of backward
            shape.qscale = QScale::no_scale;
        }
        predict(shape, dims);
        if (is_large(shape)) {
            shape.sampled_rows = true;
            shape.repeats = 1;
        }
        const auto bare = print_name(name, shape, Case{}, {});
        const auto count = ++occurrences_[bare];
        const auto stem = fmt::format("{}/{}{}", where_, name, count > 1 ? fmt::format("#{}", count) : "");
        shape.id = print_name(stem, shape, Case{}, {});
        check_form(shape, where_ + ": " + name);
    }

    std::string where_;
    YAML::Node top_;
    std::map<std::string, int> occurrences_;
};

} // namespace

std::vector<Case> load_shape_matrix(const std::filesystem::path& path, Tier highest, const KernelDims& dims,
                                    ApiFamily family) {
    return MatrixReader(path).shapes(highest, dims, family);
}

std::vector<MatrixCount> count_shapes(const std::filesystem::path& path, Tier highest) {
    return MatrixReader(path).counts(highest);
}

std::vector<ApiFamily> matrix_families() {
    std::vector<ApiFamily> families;
    for (const Section& section : sections) families.push_back(section.family);
    return families;
}

Case load_matrix_case(const std::string& stem, const std::string& overrides,
                      std::optional<std::uint64_t> seed) {
    const auto path = matrix_path(stem);
    const auto test = stem.substr(path.generic_string().size() + 1);
    auto shape = MatrixReader(path).blank_of(test.substr(0, test.find('#')));
    apply_overrides(overrides, stem, shape);
    if (seed) shape.seed = *seed;
    shape.id = print_name(stem, shape, Case{}, {});
    check_form(shape, shape.id);
    return shape;
}

std::filesystem::path matrix_path(std::string_view stem) {
    for (const std::string_view ending : {".yaml/", ".yml/"})
        if (const auto found = stem.find(ending); found != std::string_view::npos)
            return stem.substr(0, found + ending.size() - 1);
    return {};
}

} // namespace fmha::harness
