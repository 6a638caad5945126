#include "dispatcher/registry/registry.hpp"
#include "dispatcher/system/files.hpp"
#include "dispatcher/types/field_json.hpp"
#include "dispatcher/types/json.hpp"

#include <map>
#include <mutex>

namespace fmha {

std::string Registry::export_json() const {
    std::map<std::string, std::size_t> by_family, by_dtype, by_pipeline;
    Json kernels = Json::array();
    for (const KernelEntry& entry : get_all()) {
        const KernelConfig& config = entry.config;
        const std::string family(to_string(config.signature.family));
        const std::string dtype(to_string(config.signature.data_type));
        const std::string pipeline(to_string(config.algorithm.pipeline));
        ++by_family[family];
        ++by_dtype[dtype];
        ++by_pipeline[pipeline];
        Json kernel;
        kernel["name"] = name_of(entry);
        kernel["identifier"] = identifier(config);
        kernel["family"] = family;
        kernel["dtype"] = dtype;
        kernel["pipeline"] = pipeline;
        kernel["gfx_arch"] = config.arch.str();
        kernel["priority"] = to_string(entry.priority);
        kernel["built"] = entry.instance != nullptr;
        kernel["signature"] = fields_to_json(config.signature);
        kernel["algorithm"] = fields_to_json(config.algorithm);
        kernels.push_back(std::move(kernel));
    }
    Json document;
    document["schema_version"] = 1;
    document["metadata"] = {{"registry_name", name()}, {"total_kernels", kernels.size()}};
    document["statistics"] = {{"by_family", by_family}, {"by_dtype", by_dtype}, {"by_pipeline", by_pipeline}};
    document["kernels"] = std::move(kernels);
    return document.dump(2) + "\n";
}

void Registry::export_json(const std::filesystem::path& file) const {
    system::write_file(file, export_json());
}

void Registry::auto_export(std::filesystem::path file, bool now) {
    {
        const std::lock_guard copying(state_);
        auto_export_ = std::move(file);
    }
    if (now) export_after_change();
}

void Registry::export_after_change() {
    std::filesystem::path file;
    {
        const std::lock_guard copying(state_);
        file = auto_export_;
    }
    if (file.empty()) return;
    const std::lock_guard exporting(exports_);
    export_json(file);
}

} // namespace fmha
