#include "dispatcher/system/processor.hpp"

#include "dispatcher/system/parallel.hpp"

#include <fmt/format.h>

#include <fstream>
#include <unistd.h>

namespace fmha::system {

std::string processor_description() {
    std::ifstream info("/proc/cpuinfo");
    std::string model = "unknown processor";
    for (std::string line; std::getline(info, line);)
        if (line.starts_with("model name") && line.find(':') + 2 < line.size()) {
            model = line.substr(line.find(':') + 2);
            break;
        }
    return fmt::format("{}, {} hardware threads", model, hardware_threads());
}

std::int64_t physical_memory() {
    return std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
}

} // namespace fmha::system
