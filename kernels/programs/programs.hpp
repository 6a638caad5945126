#pragma once

/// Every program.
#include "kernels/programs/fmha_fwd.hpp"
