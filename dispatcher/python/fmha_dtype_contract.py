"""Which element types of Q, K, V and O belong together, under the dispatcher's module name."""

from fmha.layer.contract import (FmhaDTypeContract, FmhaDTypeContractKind, dtype_contract_from_components,
                                 dtype_contract_from_data_type, dtype_contract_from_signature)

__all__ = ["FmhaDTypeContract", "FmhaDTypeContractKind", "dtype_contract_from_components", "dtype_contract_from_data_type",
           "dtype_contract_from_signature"]
