"""The names of the dispatcher's Python layer, over `fmha`. Clients import them from `fmha_utils`."""
