#include "kernels/generator/build.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/generator/cache.hpp"
#include "kernels/generator/headers.hpp"
#include "kernels/generator/ninja.hpp"
#include "kernels/generator/resources.hpp"
#include "kernels/generator/write.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_set>

namespace fmha::generator {

namespace fs = std::filesystem;

namespace {

enum class State : std::uint8_t { wanted, built, failed };

struct Progress {
    PlannedUnit unit;
    State state = State::wanted;
    std::int64_t compile_ms = 0;
    bool left_nothing = false; ///< its command ended with 0 and wrote no object
};

class Build {
  public:
    Build(const Selection& selection, const BuildTools& tools, const BuildOptions& options)
        : selection_(selection), tools_(tools), options_(options) {
        if (!options.cache) return;
        cache_.emplace(*options.cache);
        if (const auto why = cache_->why_not_believed()) {
            result_.warnings.push_back(
                *why +
                "; everything is compiled anew and nothing is kept there (chmod go-w, or another --cache)");
            cache_.reset();
        }
    }

    BuildResult run() {
        result_.claim =
            std::make_shared<const ClaimedFolder>(options_.folder, options_.waiting, options_.stop);
        if (!options_.replace) check_others();
        check_symbols(selection_.kernels);
        std::vector<Unit> units = units_of(selection_.kernels, options_.per_file);
        round(units);
        // A kernel that does not compile must not take its neighbours with it.
        if (!result_.interrupted && std::ranges::any_of(units_, [](const Progress& p) {
                return p.state == State::failed && p.unit.unit.kernels.size() > 1;
            })) {
            units.clear();
            for (const Progress& p : units_) {
                const bool split = p.state == State::failed;
                auto parts = units_of(p.unit.unit.kernels, split ? 1 : p.unit.unit.kernels.size());
                std::ranges::move(parts, std::back_inserter(units));
            }
            round(units);
        }
        finish();
        return std::move(result_);
    }

  private:
    /// A folder holds the kernels of one selection, and nobody would tell that those of another one are gone.
    void check_others() {
        if (!fs::exists(file(std::string(built::manifest_file)))) return;
        built::Manifest before;
        try {
            before = built::read_manifest(options_.folder);
        } catch (const built::OtherVersion& error) {
            result_.warnings.push_back(fmt::format("{}, as happens now", error.what()));
            return;
        } catch (const InputError& error) {
            throw InputError(fmt::format("{}; so nobody can tell which kernels the folder holds: fmha build "
                                         "--replace lets them go, another folder keeps them",
                                         error.what()));
        }
        std::unordered_set<std::string_view> asked;
        for (const NamedKernel& kernel : selection_.kernels) asked.insert(kernel.name);
        std::size_t others = 0;
        std::string first;
        for (const built::CodeObject& object : before.objects)
            for (const built::BuiltKernel& kernel : object.kernels)
                if (!asked.contains(kernel.name) && others++ == 0) first = kernel.name;
        if (others > 0)
            throw InputError(fmt::format(
                "{}: holds {} kernel{} that this build leaves out, such as {}; fmha build --replace "
                "lets them go, another folder keeps them",
                options_.folder.string(), others, others == 1 ? "" : "s", first));
    }

    /// Brings `units` into the folder as far as possible.
    void round(const std::vector<Unit>& units) {
        write_sources(units, options_.folder, source_extension(tools_.launcher));
        const auto planned = write_build(units, tools_, options_.folder);
        units_.clear();
        for (const PlannedUnit& unit : planned) units_.push_back({unit});
        const auto log = read_ninja_log(options_.folder);
        std::vector<const PlannedUnit*> wanted;
        for (Progress& p : units_) {
            take_from_folder(p, log);
            if (p.state != State::built && !stopped()) take_from_cache(p);
            if (p.state != State::built) wanted.push_back(&p.unit);
        }
        if (!wanted.empty() && !stopped()) compile(wanted);
    }

    /// Whether somebody wants the build to end. Then what is there is kept, and nothing is begun that takes long.
    bool stopped() {
        result_.interrupted = result_.interrupted || (options_.stop && options_.stop());
        return result_.interrupted;
    }

    fs::path file(const std::string& name) const { return options_.folder / name; }
    CompiledUnit files(const Progress& p) const {
        return {file(p.unit.object), file(p.unit.log()), p.compile_ms};
    }

    /// Names carry the beginning of the key, and Ninja's log only knows finished work.
    void take_from_folder(Progress& p, const NinjaLog& log) {
        const auto done = log.find(p.unit.object);
        if (done == log.end() || !fs::exists(file(p.unit.object)) || !fs::exists(file(p.unit.log()))) return;
        p.state = State::built;
        p.compile_ms = done->second;
        if (!counted_.contains(p.unit.object)) result_.present += p.unit.unit.kernels.size();
        counted_.insert(p.unit.object);
    }

    void take_from_cache(Progress& p) {
        if (!cache_) return;
        const auto took = cache_->fetch(p.unit.key, files(p));
        if (!took) return;
        p.state = State::built;
        p.compile_ms = *took;
        if (!counted_.contains(p.unit.object)) result_.cached += p.unit.unit.kernels.size();
        counted_.insert(p.unit.object);
    }

    void compile(const std::vector<const PlannedUnit*>& wanted) {
        system::write_file(file("wanted.ninja"), ninja_selection(wanted));
        const NinjaRun ran = run_ninja(options_.folder, "wanted.ninja", "wanted", options_.jobs,
                                       options_.progress, options_.stop);
        result_.compile_seconds += ran.seconds;
        result_.interrupted = result_.interrupted || ran.interrupted;
        // Entries are found by the headers that were read before the compilers ran.
        const bool same_headers = headers_digest(tools_.root) == tools_.headers;
        if (!same_headers)
            throw BuildError(fmt::format(
                "the headers under {} changed while kernels were compiled; run again", tools_.root.string()));
        const auto log = read_ninja_log(options_.folder);
        std::size_t failures = 0;
        for (Progress& p : units_) {
            if (p.state == State::built) continue;
            if (ran.failed.contains(p.unit.object)) {
                p.state = State::failed;
                ++failures;
            } else if (const auto done = log.find(p.unit.object);
                       done != log.end() && fs::exists(file(p.unit.object))) {
                p.state = State::built;
                p.compile_ms = done->second;
                result_.compiled += p.unit.unit.kernels.size();
                counted_.insert(p.unit.object);
                keep(p);
            } else if (!ran.interrupted) {
                p.state = State::failed;
                p.left_nothing = true; // of a launcher, for instance
            }
        }
        if (ran.exit_code != 0 && failures == 0 && !ran.interrupted)
            throw BuildError(fmt::format("ninja in {} ended with exit code {}:\n{}", options_.folder.string(),
                                         ran.exit_code, ran.output));
    }

    void keep(const Progress& p) {
        if (!cache_) return;
        try {
            cache_->store(p.unit.key, files(p));
        } catch (const InputError& error) {
            result_.warnings.push_back(
                fmt::format("{}; compiled kernels are not kept for other builds", error.what()));
            cache_.reset(); // said once
        }
    }

    void finish() {
        std::vector<std::string> kept;
        built::Manifest& manifest = result_.manifest;
        for (const Progress& p : units_) {
            if (p.state != State::built) {
                report(p);
                continue;
            }
            const Compiler& compiler = tools_.compiler_of(p.unit.unit);
            built::CodeObject object{
                p.unit.object, p.unit.unit.kernels.front().config.arch, compiler.version, p.unit.key, {}};
            for (const NamedKernel& kernel : p.unit.unit.kernels)
                if (!refused(p, kernel))
                    object.kernels.push_back(
                        {kernel.name, kernel.config, built::symbol_of(kernel.name), std::nullopt});
            if (object.kernels.empty()) continue;
            manifest.objects.push_back(std::move(object));
            result_.units.push_back(p.unit);
            result_.compile_ms.push_back(p.compile_ms);
            for (const std::string& name : {p.unit.object, p.unit.log()})
                kept.push_back(fs::path(name).filename().string());
        }
        for (const DeclinedKernel& declined : selection_.declined)
            manifest.missing.push_back({declined.kernel.name, declined.kernel.config, declined.reason});
        remove_others(options_.folder / "obj", kept);
        built::write_manifest(manifest, options_.folder);
    }

    /// A warp-specialised kernel other than the intended one is right and slow. Nothing else would tell.
    bool refused(const Progress& p, const NamedKernel& kernel) {
        if (options_.keep_held_up || kernel.config.algorithm.pipeline != Pipeline::ws) return false;
        const std::string log = system::read_file(file(p.unit.log()));
        const auto sentences = team_refusals(log, built::symbol_of(kernel.name));
        if (sentences.empty()) return false;
        const std::string why = fmt::format("{}", fmt::join(sentences, "; "));
        result_.manifest.missing.push_back({kernel.name, kernel.config, "it is held up: " + why});
        result_.failed.push_back({kernel, command_line(p.unit, tools_), why + "\n" + log});
        return true;
    }

    void report(const Progress& p) {
        for (const NamedKernel& kernel : p.unit.unit.kernels)
            result_.manifest.missing.push_back(
                {kernel.name, kernel.config,
                 p.state == State::failed ? "it did not compile" : "the build was interrupted before it"});
        if (p.state != State::failed) return;
        std::string errors;
        if (fs::exists(file(p.unit.log()))) errors = system::read_file(file(p.unit.log()));
        if (p.left_nothing) errors += "the command ended with 0 and wrote no object\n";
        for (const NamedKernel& kernel : p.unit.unit.kernels)
            result_.failed.push_back({kernel, command_line(p.unit, tools_), errors});
    }

    const Selection& selection_;
    const BuildTools& tools_;
    const BuildOptions& options_;
    std::optional<KernelCache> cache_;
    std::vector<Progress> units_;
    std::unordered_set<std::string> counted_; ///< objects whose kernels are in one of the result's counts
    BuildResult result_;
};

} // namespace

BuildResult build(const Selection& selection, const BuildTools& tools, const BuildOptions& options) {
    return Build(selection, tools, options).run();
}

std::vector<PlannedUnit> write_build(std::span<const Unit> units, const BuildTools& tools,
                                     const fs::path& folder) {
    auto planned = plan_units(units, tools);
    std::vector<std::string> parsed;
    for (const auto& [arch, headers] : parsed_headers(tools))
        for (const char* extension : {".pch", ".args"})
            parsed.push_back(fs::path(headers.stem).filename().string() + extension);
    if (!parsed.empty()) {
        fs::create_directories(folder / parsed_folder);
        system::update_file(folder / parsed_source, parsed_source_text());
        parsed.push_back(fs::path(parsed_source).filename().string());
    }
    remove_others(folder / parsed_folder, parsed);
    system::write_file(folder / "build.ninja", ninja_file(planned, tools));
    fs::create_directories(folder / "obj");
    return planned;
}

} // namespace fmha::generator
