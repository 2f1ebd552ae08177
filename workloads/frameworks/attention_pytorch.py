"""The backends of PyTorch's scaled_dot_product_attention, each by itself."""
from pack import Unsupported

# What the gradient's node is named after, where the backend did compute; None: it is made of others.
BACKENDS = {"math": ("MATH", None), "flash": ("FLASH_ATTENTION", "Flash"),
            "efficient": ("EFFICIENT_ATTENTION", "Efficient"), "cudnn": ("CUDNN_ATTENTION", "Cudnn")}

REFUSALS = "No available kernel", "No viable backend"


def register(pack, torch, backward):
    """BACKWARD(x, function, *inputs) is the pack's."""
    for name in BACKENDS:
        register_one(pack, torch, backward, name)


def register_one(pack, torch, backward, name):
    constant, node = BACKENDS[name]

    @pack.operation("attention_%s_bwd" % name, "scaled_dot_product_attention, %s backend, backward" % name,
                    needs=("torch.nn.attention.sdpa_kernel", "torch.nn.attention.SDPBackend." + constant),
                    since="PyTorch %s" % ("2.5" if name == "cudnn" else "2.3"))
    def compute(x, n):
        attention = only(torch, constant)
        shape = 2, 4, max(n // 256, 16), 32
        inputs = [x.uniform(name, *shape) for name in ("query", "key", "value")]
        leaves = [value.detach().requires_grad_() for value in inputs]
        check_backend(pack, name, node, attention(*leaves).grad_fn)
        return backward(x, lambda *given: attention(*given).float(), *inputs)
    pack.operations["attention_%s_bwd" % name].summary = (
        "gradients of queries, keys and values in bfloat16, by the backend %s and no other" % constant)


def only(torch, constant):
    """Attention that PyTorch refuses where the backend cannot compute it."""
    backend = getattr(torch.nn.attention.SDPBackend, constant)

    def attention(*given):
        try:
            with torch.nn.attention.sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(*(value.bfloat16() for value in given))
        except RuntimeError as error:
            if str(error).startswith(REFUSALS):
                raise Unsupported(str(error).strip().splitlines()[0][:300]) from None
            raise
    return attention


def check_backend(pack, name, node, gradient):
    """Unsupported where another backend computed: what was asked for is only a wish."""
    used = gradient.name()
    if node not in used if node else "ScaledDotProduct" in used:
        raise Unsupported("PyTorch %s computed it by %s where the backend %s was asked for"
                          % (pack.version(), used, name))
