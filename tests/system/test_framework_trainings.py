"""What the packs' trainings and attention do before any framework computes: stand-ins answer for PyTorch."""
import sys
import types

import pytest

from service import ROOT

sys.path[:0] = [str(ROOT / "workloads" / "frameworks"), str(ROOT / "workloads" / "python")]
import attention_pytorch  # noqa: E402
import pack  # noqa: E402
import trainings  # noqa: E402


class Plain(pack.Pack):
    name, subject_name = "plain", "Plain"

    def version(self):
        return "9.9"


class Numbers(list):
    """A tensor as far as trainings.py computes with one."""

    def __add__(self, number):
        return Numbers(value + number for value in self)


def made(make, steps, seed=1):
    plain = Plain()
    plain.tensor = lambda values, shape: Numbers(values)
    x = pack.Inputs(plain, "plain_train", seed)
    make(x, steps)
    return x.made


@pytest.mark.parametrize("make", [trainings.cnn_inputs, trainings.rnn_inputs, trainings.transformer_inputs])
def test_what_is_learned_from_is_a_function_of_the_seed(make):
    one = made(make, 2)
    assert one == made(make, 2) and set(one) == set(made(make, 3))
    assert all(one[name] != value for name, value in made(make, 2, seed=2).items())


def test_what_is_learned_from_is_in_range():
    cnn = made(trainings.cnn_inputs, 2)
    assert len(cnn["order"]) == 2 * trainings.CNN["batch"]
    assert 0 <= min(cnn["order"]) and max(cnn["order"]) < trainings.CNN["examples"]
    assert 0 <= min(cnn["classes"]) and max(cnn["classes"]) < trainings.CNN["classes"]
    spoken = made(trainings.rnn_inputs, 2)["spoken"]
    assert 0 <= min(spoken) and max(spoken) < trainings.RNN["symbols"] - 1
    # A label that is spoken twice needs a blank between: as many frames as a sequence has are enough.
    assert trainings.RNN["labels"] * trainings.RNN["frames"] >= 2 * trainings.RNN["labels"] - 1


# scaled_dot_product_attention of a stand-in for PyTorch

class Value:
    """A tensor; NODE is how its gradient's node is called."""

    def __init__(self, node="AccumulateGrad"):
        self.node = node

    def bfloat16(self):
        return self

    detach = float = bfloat16

    def requires_grad_(self):
        return self

    @property
    def grad_fn(self):
        return types.SimpleNamespace(name=lambda: self.node)


class Torch:
    """Computes attention by USES, whatever it is asked for, or raises it."""

    def __init__(self, uses):
        self.uses, self.allowed = uses, []
        backend = types.SimpleNamespace(**{name: name for name, _ in attention_pytorch.BACKENDS.values()})
        self.nn = types.SimpleNamespace(
            attention=types.SimpleNamespace(SDPBackend=backend, sdpa_kernel=self.sdpa_kernel),
            functional=types.SimpleNamespace(scaled_dot_product_attention=self.attention))

    def sdpa_kernel(self, backend):
        torch = self

        class Allowed:
            def __enter__(self):
                torch.allowed.append(backend)

            def __exit__(self, *_):
                torch.allowed.pop()
        return Allowed()

    def attention(self, *_):
        assert len(self.allowed) == 1, "it is free to choose"
        if isinstance(self.uses, Exception):
            raise self.uses
        return Value(self.uses)


def attention_of(uses, name):
    """What the operation of the backend NAME makes, with a PyTorch that USES another, perhaps."""
    plain, torch = Plain(), Torch(uses)
    plain.tensor = lambda values, shape: Value()
    attention_pytorch.register(plain, torch, lambda x, function, *inputs: function(*inputs))
    return plain.operations["attention_%s_bwd" % name].function(pack.Inputs(plain, "plain", 1), 1 << 12)


@pytest.mark.parametrize("name, node", [
    ("math", "UnsafeViewBackward0"), ("flash", "ScaledDotProductFlashAttentionForCpuBackward0"),
    ("flash", "ScaledDotProductFlashAttentionBackward0"), ("efficient", "ScaledDotProductEfficientAttentionBackward0"),
    ("cudnn", "ScaledDotProductCudnnAttentionBackward0")])
def test_a_backend_that_computes_is_measured(name, node):
    assert attention_of(node, name).node == node


@pytest.mark.parametrize("name, node", [
    ("math", "ScaledDotProductFlashAttentionForCpuBackward0"), ("flash", "UnsafeViewBackward0"),
    ("efficient", "ScaledDotProductFlashAttentionBackward0"), ("cudnn", "BmmBackward0")])
def test_another_backend_is_not_measured_under_its_name(name, node):
    with pytest.raises(pack.Unsupported, match=f"PyTorch 9.9 computed it by {node} where the backend {name} was"):
        attention_of(node, name)


def test_a_backend_that_is_refused_is_unsupported_in_its_own_words():
    with pytest.raises(pack.Unsupported, match="^No available kernel. Aborting execution.$"):
        attention_of(RuntimeError("No available kernel. Aborting execution.\nmore"), "flash")
    for trouble in "out of memory", "CUDA error: no kernel image is available for execution on the device":
        with pytest.raises(RuntimeError, match=trouble):
            attention_of(RuntimeError(trouble), "flash")
