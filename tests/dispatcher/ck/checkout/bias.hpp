#pragma once
enum class bias_enum { no_bias, elementwise_bias, alibi };
