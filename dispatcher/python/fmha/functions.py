"""Attention on arrays in one call."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from fmha import families
from fmha.arch import FALLBACK
from fmha.calls import Call
from fmha.library import Context, Library, load
from fmha.tensors import View, view_of
from fmha.values import shown, text


@dataclass
class Attention:
    """The outputs of a call: `o`, and `lse` [entries, heads, rows] and `randval` where they were asked for."""
    o: Any
    lse: Any = None
    randval: Any = None
    kernel: str = ""
    milliseconds: float = 0.0


@dataclass
class Gradients:
    """The outputs of a backward call, in the shapes of the inputs."""
    dq: Any
    dk: Any
    dv: Any
    dbias: Any = None
    d_sink: Any = None
    kernel: str = ""
    milliseconds: float = 0.0


@lru_cache(maxsize=None)
def _library() -> Library:
    return load()


def _context(context: Context | None, arch: str | None) -> tuple[Context, str]:
    if context is not None:
        if arch not in (None, context.arch):
            raise ValueError(f"arch is {shown(arch)}, and the context has kernels of {context.arch}; give one of them")
        return context, context.arch
    arch = FALLBACK if arch is None else text("arch", arch)
    return Context(_library(), arch), arch


def _type_of(view: View, data_type: str | None) -> str:
    """The data type that an array's elements stand for, unless one is named."""
    if data_type is not None:
        return data_type
    if view.is_bf16:
        return "bf16"
    names = {"float16": "fp16", "float32": "fp32", "float64": "fp32"}
    if view.dtype.name not in names:
        raise ValueError(f"{view.dtype} elements do not tell the data type; give data_type")
    return names[view.dtype.name]


def attention(q: Any, k: Any, v: Any, *, data_type: str | None = None, context: Context | None = None, arch: str | None = None,
              lse: Any = False, randval: bool = False, out: Any = None, **options: Any) -> Attention:
    """softmax(q kᵀ · scale + bias) v, with the keywords of `families.forward`.

    q is [entries, heads, rows, channels] unless `layout` says "bshd" or, with seqstart_q and seqstart_k, "shd". Without a context
    the kernels of `arch` (gfx950) run on the host. Outputs are NumPy arrays, float16 for fp16 and float32 otherwise; with arrays
    of a device, objects that own device memory; with `out`, and an array for `lse`, memory of the caller.
    Raises fmha.Error with the library's sentence, ValueError and TypeError for arrays that do not fit."""
    context, arch = _context(context, arch)
    view = view_of(q)
    call = families.forward(context, arch, q, k, v, data_type=_type_of(view, data_type), lse=lse, randval=randval, out=out,
                            **options)
    call.run()
    return Attention(_handed(call, "o", view), _handed(call, "lse", view), _handed(call, "randval", view), call.kernel,
                     call.milliseconds)


def attention_backward(q: Any, k: Any, v: Any, o: Any, lse: Any, d_o: Any, *, data_type: str | None = None,
                       context: Context | None = None, arch: str | None = None, **options: Any) -> Gradients:
    """The gradients of `attention` from its results, with the keywords of `families.backward`. Arrays as in `attention`; on the
    host dk and dv have the shapes of k and v, on a device, unless reduce_dk_dv is given, a head for every query head."""
    context, arch = _context(context, arch)
    view = view_of(q)
    call = families.backward(context, arch, q, k, v, o, lse, d_o, data_type=_type_of(view, data_type), **options)
    call.run()
    result = Gradients(*(_handed(call, name, view) for name in ("dq", "dk", "dv", "dbias", "d_sink")), call.kernel,
                       call.milliseconds)
    if not view.on_device:
        layout = options.get("layout", "bhsd")
        heads = view_of(k).shape[layout.index("h")]
        result.dk, result.dv = (families.shared_heads(array, heads, layout) for array in (result.dk, result.dv))
    return result


def _handed(call: Call, name: str, like: View) -> Any:
    """An output in the caller's memory, else in the kind of memory that the inputs had; None when it was not asked for."""
    if name not in call.outputs:
        return None
    return call.outputs[name][0] if like.on_device or name in call.given else call.output(name)
