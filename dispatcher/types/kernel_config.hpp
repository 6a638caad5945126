#pragma once

#include "dispatcher/types/fields.hpp"
#include "dispatcher/types/kernel_values.hpp"
