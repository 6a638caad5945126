#include "kernels/generator/audit.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/system/parallel.hpp"
#include "dispatcher/system/process.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/family_traits.hpp"
#include "kernels/generator/loop_model.hpp"
#include "kernels/generator/loop_report.hpp"
#include "kernels/generator/resources.hpp"
#include "kernels/generator/second_opinion.hpp"
#include "kernels/generator/unit_rates.hpp"
#include "kernels/targets/hip/block_shape.hpp"
#include "kernels/targets/with_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <map>
#include <mutex>

namespace fmha::generator {

namespace fs = std::filesystem;

namespace {

/// The reader of machine code. NVIDIA's resources need none, and its loops are read where there is one.
struct Tools {
    fs::path disassembler, analyzer, sass;
};
std::map<std::string, Tools> tools_by_architecture(const BuildTools& tools) {
    std::map<std::string, Tools> found;
    for (const auto& [arch, compiler] : tools.compilers) {
        if (compiler.kind != CompilerKind::clang) {
            const fs::path sass = compiler.path.parent_path() / "cuobjdump";
            if (fs::exists(sass)) found[arch].sass = sass;
            continue;
        }
        found[arch] = {disassembler_of(compiler), analyzer_of(compiler), {}};
        if (found[arch].disassembler.empty())
            throw InputError(
                fmt::format("--audit: {} ({}) has no llvm-objdump beside it (Debian package llvm-{})",
                            compiler.path.string(), compiler.version, compiler.major));
    }
    return found;
}

/// The end of an audit that somebody wants to stop.
struct Stopped final : std::exception {};

std::string words_of(const std::vector<std::string>& command, const BuildOptions& options) {
    const auto listing = system::run_process(command, {.stop = options.stop});
    if (listing.stopped) throw Stopped();
    if (listing.exit_code != 0)
        throw InputError(fmt::format("{} {}: exit code {}: {}", command.front(), command.back(),
                                     listing.exit_code, listing.err));
    return listing.out;
}

/// Waves that a SIMD holds; on NVIDIA warps that a quarter of a multiprocessor holds.
std::int64_t waves_of(const built::Resources& used, const KernelConfig& config) {
    constexpr std::int64_t lanes = 32, quarters = 4;
    if (!is_nvidia(config.arch)) return used.occupancy;
    return used.occupancy * hip_target::block_shape(config).threads / (lanes * quarters);
}

/// Whether blocks loop over keys, those of backward over rows, and multiply in that loop alone, by instructions that the model of the loop
/// knows: products of warp groups run beside the rest, and the two halves of backward's warps add dQ in different places.
bool multiplies_in_a_loop(const KernelConfig& config) {
    if (config.algorithm.pipeline == Pipeline::ws) return false;
    const MatrixProducts products = traits_of(config.signature.family).products;
    return products == MatrixProducts::two || (products == MatrixProducts::five && !is_nvidia(config.arch));
}

/// Reads the resources of a unit's kernels; returns the mistakes in their loops.
std::vector<AuditFinding> audit_unit(const PlannedUnit& unit, std::int64_t compile_ms,
                                     built::CodeObject& object, const Tools& tools,
                                     const BuildOptions& options) {
    if (options.stop && options.stop()) throw Stopped();
    const std::string file = (options.folder / unit.object).string();
    const std::string log = system::read_file(options.folder / unit.log());
    const bool words = !tools.disassembler.empty();
    const std::string text =
        words ? words_of({tools.disassembler.string(), "-t", "-d", "--no-show-raw-insn", file}, options)
              : system::read_file(file);
    const ResourcesBySymbol found =
        words ? amd_resources(log, text, file) : nvidia_resources(log, text, file);
    const Listing listing =
        words                ? amd_listing(text, file)
        : tools.sass.empty() ? Listing()
                             : nvidia_listing(words_of({tools.sass.string(), "-sass", file}, options), file);
    std::vector<AuditFinding> wrong;
    for (const AssemblerRemark& remark : words ? std::vector<AssemblerRemark>() : held_up(log))
        for (const built::BuiltKernel& kernel : object.kernels)
            if (remark.symbol.empty() || remark.symbol == kernel.symbol)
                wrong.push_back({kernel.name, remark.sentence});
    if (!words)
        for (const auto& [symbol, instructions] : team_instructions(text, file))
            for (const built::BuiltKernel& kernel : object.kernels)
                if (kernel.symbol == symbol && kernel.config.algorithm.pipeline == Pipeline::ws)
                    for (std::string& sentence : team_violations(instructions))
                        wrong.push_back({kernel.name, std::move(sentence)});
    for (built::BuiltKernel& kernel : object.kernels) {
        const auto used = found.find(kernel.symbol);
        if (used == found.end())
            throw InputError(
                fmt::format("{}: the compiler said nothing about {}", object.file, kernel.symbol));
        kernel.resources = used->second;
        kernel.resources->compile_ms = compile_ms / static_cast<std::int64_t>(object.kernels.size());
        if (!words) add_launch(*kernel.resources, kernel.config);
        const auto code = listing.find(kernel.symbol);
        if (code == listing.end() || !multiplies_in_a_loop(kernel.config)) continue;
        try {
            const LoopPaths paths = loop_paths(code->second, kernel.config.arch, kernel.symbol);
            kernel.resources->loop =
                loop_model(paths, kernel.config, waves_of(*kernel.resources, kernel.config));
            kernel.resources->loop->second_opinion =
                second_opinion(paths.plain, kernel.config.arch, tools.analyzer, options.stop);
            if (options.stop && options.stop()) throw Stopped();
        } catch (const InputError& error) {
            wrong.push_back({kernel.name, error.what()});
        }
    }
    return wrong;
}

} // namespace

bool spilling(const built::Resources& used) {
    return used.scratch_bytes > 0 || used.vgpr_spills > 0;
}

std::string tile_group(const KernelConfig& config) {
    const auto& [s, tile] = std::pair(config.signature, config.algorithm.tile);
    return fmt::format("{} {} h{}x{} {} t{}x{}x{}x{}x{}x{}", to_string(s.family), to_string(s.data_type),
                       s.hdim_q, s.hdim_v, to_string(config.algorithm.pipeline), tile.m0, tile.n0, tile.k0,
                       tile.n1, tile.k1, tile.k0max);
}

std::vector<std::string> violations(const built::Resources& used, const arch::Hardware& hardware,
                                    const KernelConfig& config, std::int64_t scratch) {
    std::vector<std::string> sentences;
    if (used.scratch_bytes > scratch)
        sentences.push_back(
            fmt::format("{} bytes of scratch a lane, allowed: {}", used.scratch_bytes, scratch));
    if (used.lds_bytes > hardware.limits.lds_bytes)
        sentences.push_back(fmt::format("{} bytes of LDS a block, {} has {}", used.lds_bytes,
                                        hardware.limits.arch.view(), hardware.limits.lds_bytes));
    if (used.vgprs + used.agprs > hardware.registers_per_lane)
        sentences.push_back(fmt::format("{} registers a lane, {} has {}", used.vgprs + used.agprs,
                                        hardware.limits.arch.view(), hardware.registers_per_lane));
    if (targets::has_products(config.signature.family) && used.matrix_instructions.empty())
        sentences.emplace_back("no matrix instruction");
    return sentences;
}

std::vector<AuditFinding> audit(BuildResult& result, const BuildTools& tools, const arch::ArchSet& archs,
                                const BuildOptions& options, const SpillsByArch& recorded) {
    const auto tools_of = tools_by_architecture(tools);
    auto& objects = result.manifest.objects;
    std::vector<std::vector<AuditFinding>> loops(objects.size());
    std::mutex guard; // of the result's word and of the progress
    std::size_t done = 0;
    system::parallel_for(
        objects.size(),
        [&](std::size_t i) {
            const auto tool = tools_of.find(objects[i].arch.str());
            try {
                loops[i] = audit_unit(result.units[i], result.compile_ms[i], objects[i],
                                      tool == tools_of.end() ? Tools() : tool->second, options);
            } catch (const Stopped&) {
                for (built::BuiltKernel& kernel : objects[i].kernels) kernel.resources.reset();
                const std::scoped_lock lock(guard);
                result.interrupted = true;
                return;
            }
            const std::scoped_lock lock(guard);
            if (options.progress) options.progress(++done, objects.size(), "audit of " + objects[i].file);
        },
        options.jobs);

    std::vector<AuditFinding> findings;
    for (auto& wrong : loops) findings.insert(findings.end(), wrong.begin(), wrong.end());
    for (const built::CodeObject& object : objects) {
        const auto spills_of = recorded.find(object.arch.str());
        for (const built::BuiltKernel& kernel : object.kernels) {
            if (!kernel.resources) continue;
            for (std::string& sentence :
                 violations(*kernel.resources, archs.at(object.arch).hardware(), kernel.config,
                            spills_of == recorded.end() ? 0 : spills_of->second.allowed(kernel.name)))
                findings.push_back({kernel.name, std::move(sentence)});
        }
    }
    if (done == 0)
        return findings; // the build has written the same manifest, tens of megabytes for a whole list
    built::write_manifest(result.manifest, options.folder);
    if (const std::string page = loop_page(result.manifest); !page.empty())
        system::write_file(options.folder / loop_page_file, page);
    return findings;
}

std::vector<SpillRow> spills(const built::Manifest& manifest) {
    std::vector<SpillRow> rows{{"all", 0, 0, 0}};
    std::map<std::string, SpillRow> groups;
    built::each_kernel(manifest, [&](const built::BuiltKernel& kernel, const built::CodeObject& object) {
        const std::string what = fmt::format("{} {}", object.arch.view(), tile_group(kernel.config));
        SpillRow& group = groups.try_emplace(what, SpillRow{what}).first->second;
        for (SpillRow* row : {&rows.front(), &group}) {
            ++row->audited;
            if (kernel.resources && spilling(*kernel.resources)) {
                ++row->spilling;
                row->most_scratch = std::max(row->most_scratch, kernel.resources->scratch_bytes);
            }
        }
    });
    for (auto& [what, row] : groups)
        if (row.spilling > 0) rows.push_back(std::move(row));
    return rows;
}

std::string advice_without_records(const built::Manifest& manifest) {
    const auto spilling =
        std::ranges::count_if(spilling_kernels(manifest), [](const built::BuiltKernel* kernel) {
            return kernel->resources->scratch_bytes > 0;
        });
    if (spilling == 0) return {};
    return fmt::format("{} kernel{} need{} scratch; known spills are accepted with --spills FOLDER, and "
                       "those of the house's kernels are "
                       "recorded in kernels/generator/spills of the source tree",
                       spilling, spilling == 1 ? "" : "s", spilling == 1 ? "s" : "");
}

std::vector<const built::BuiltKernel*> spilling_kernels(const built::Manifest& manifest) {
    std::vector<const built::BuiltKernel*> kernels;
    built::each_kernel(manifest, [&](const built::BuiltKernel& kernel, const built::CodeObject&) {
        if (kernel.resources && spilling(*kernel.resources)) kernels.push_back(&kernel);
    });
    return kernels;
}

std::vector<const built::BuiltKernel*> slowest_kernels(const built::Manifest& manifest, std::size_t most) {
    std::vector<const built::BuiltKernel*> kernels;
    built::each_kernel(manifest, [&](const built::BuiltKernel& kernel, const built::CodeObject&) {
        if (kernel.resources) kernels.push_back(&kernel);
    });
    std::ranges::stable_sort(kernels, std::ranges::greater(),
                             [](const built::BuiltKernel* kernel) { return kernel->resources->compile_ms; });
    if (kernels.size() > most) kernels.resize(most);
    return kernels;
}

} // namespace fmha::generator
