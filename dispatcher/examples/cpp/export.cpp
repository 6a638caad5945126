// Writes a registry as JSON, reads it, and finds and runs a kernel by its entry there.

#include "attention.hpp"
#include "dispatcher/registry/catalogue.hpp"
#include "dispatcher/runner.hpp"
#include "dispatcher/types/json.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

int main() {
    const auto archs = fmha::arch::ArchSet::built_in();
    fmha::Registry registry("exported");
    for (const auto& kernel : example::host_kernels([](const fmha::KernelConfig& c) {
             return c.signature.hdim_q == 64 && c.signature.mask == fmha::MaskClass::none;
         }))
        registry.add(kernel);
    const auto file = std::filesystem::temp_directory_path() / fmt::format("fmha_registry.{}.json", getpid());
    registry.export_json(file);
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    std::filesystem::remove(file);

    const fmha::Json document = fmha::Json::parse(text.str());
    const fmha::Json& kernels = document["kernels"];
    fmt::print("{} kernels\n", kernels.size());
    bool good = example::check(kernels.size() == registry.size() && kernels.size() > 0,
                               "every kernel stands in the file");

    const fmha::Dispatcher dispatcher(registry, fmha::devices_of(archs));
    const fmha::Runner runner(dispatcher);
    for (std::size_t i = 0; i < kernels.size(); ++i) {
        const std::string identifier = kernels[i]["identifier"].get<std::string>();
        example::Attention attention(2, 1, 128, 256);
        runner.run_explicit(identifier, attention.problem(), attention.args(), {});
        good &= attention.judge(kernels[i]["name"].get<std::string>().c_str());
    }
    return good ? 0 : 1;
}
