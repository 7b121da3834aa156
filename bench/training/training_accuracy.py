"""How far the gradients of a model are from those of the same model in fp64 with attention step by step."""
import torch

from training import training_model
from training.training_contenders import eager


def relative(found, right):
    """inf where there is NaN."""
    error = ((found.double() - right).norm() / right.norm().clamp_min(1e-300)).item()
    return error if error == error else float("inf")


def rounded(attend):
    """Attention in bf16 within a model of another type: what goes in is rounded, and so is the gradient of what comes out."""
    def call(q, k, v):
        return attend(*(t.to(torch.bfloat16) for t in (q, k, v))).to(q.dtype)
    return call


class Reference:
    """One model with its gradients in fp64. WAYS: what of a contender's model is in bf16."""
    WAYS = {"model": "the whole model in bf16", "attention": "attention alone in bf16, all else in fp64"}

    def __init__(self, shape, device, seed):
        self.shape, self.low = shape, training_model.made(shape, device, seed)
        model, state, grad = training_model.made(shape, device, seed)
        self.high = model.double(), state.detach().double().requires_grad_(), grad.double()
        self.right = training_model.gradients(*self.high, eager)

    def errors(self, way, contender):
        """{name: relative error} of the gradients of the hidden state and of every parameter."""
        with contender.context():
            if way == "model":
                found = training_model.gradients(*self.low, contender.attend)
            else:
                found = training_model.gradients(*self.high, rounded(contender.attend))
        return {name: relative(found[name], right) for name, right in self.right.items()}
