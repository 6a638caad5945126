"""Our attention as a function of PyTorch with gradients, on tensors of the processor, which are shared and not copied; compared with PyTorch's
own. Exit code 77: PyTorch is not installed."""

import sys

try:
    import torch
    from torch.autograd.function import once_differentiable
except ImportError:
    print("not run: PyTorch is not installed")
    sys.exit(77)

import fmha


class Attention(torch.autograd.Function):
    """softmax(q kᵀ / sqrt(d)) v of [batch, heads, positions, channels] tensors, causal or not."""

    @staticmethod
    def forward(ctx, q, k, v, causal):
        mask = "top_left" if causal else "no"
        result = fmha.attention(q.detach(), k.detach(), v.detach(), mask=mask, lse=True)
        o, lse = torch.from_numpy(result.o).to(q.dtype), torch.from_numpy(result.lse)  # bfloat16 comes as floats
        ctx.save_for_backward(q, k, v, o, lse)
        ctx.mask = mask
        return o

    @staticmethod
    @once_differentiable
    def backward(ctx, d_o):
        q, k, v, o, lse = (tensor.detach() for tensor in ctx.saved_tensors)
        result = fmha.attention_backward(q, k, v, o, lse, d_o.contiguous(), mask=ctx.mask)
        return *(torch.from_numpy(gradient) for gradient in (result.dq, result.dk, result.dv)), None


def plain(q, k, v, causal):
    """The same in PyTorch's own operators, those of old releases too."""
    scores = q @ k.transpose(2, 3) / q.shape[3] ** 0.5
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[2:], dtype=torch.bool).triu(1), float("-inf"))
    return torch.softmax(scores, -1) @ v


def main() -> int:
    torch.manual_seed(3)
    tensors = [torch.randn(1, 4, length, 64, requires_grad=True) for length in (50, 70, 70)]
    good = True
    for causal in (False, True):
        results = []
        for attend in (Attention.apply, plain):
            for tensor in tensors:
                tensor.grad = None
            o = attend(*tensors, causal)
            o.square().sum().backward()
            results.append([o.detach(), *(tensor.grad for tensor in tensors)])
        for name, own, theirs in zip(("o", "dq", "dk", "dv"), *results):
            worst = (own - theirs).abs().max().item()
            print(f"causal={causal} {name}: apart by {worst:.1e}")
            good &= worst < 1e-3
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
