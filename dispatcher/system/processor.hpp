#pragma once

#include <cstdint>
#include <string>

namespace fmha::system {

/// "AMD EPYC 9654 96-Core Processor, 192 hardware threads", for the head of a report.
std::string processor_description();

/// Bytes of memory that the machine has.
std::int64_t physical_memory();

} // namespace fmha::system
