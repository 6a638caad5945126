#pragma once

#include <string>

namespace fmha::system {

/// "AMD EPYC 9654 96-Core Processor, 192 hardware threads", for the head of a report.
std::string processor_description();

} // namespace fmha::system
