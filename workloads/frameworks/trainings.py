"""The trainings of all packs: what they learn from, in numbers that no framework chooses.

The first two are those of slide 44, and of workloads/train: examples that are the pattern of their class,
or of what is spoken, plus noise.  An iteration is a whole training, in a fresh model from the same
weights; what is drawn in it (dropout) is drawn from the case's seed.  n is the number of steps."""

SIZES = {"small": 8, "large": 64}

CNN = {"side": 16, "channels": (8, 16), "classes": 10, "batch": 64, "examples": 512, "noise": 0.5,
       "drop": 0.25, "rate": 0.05, "momentum": 0.9}
# A label is spoken for several frames; label 0 is the blank.
RNN = {"features": 8, "hidden": 24, "symbols": 8, "labels": 5, "frames": 4, "batch": 96, "noise": 0.25,
       "rate": 0.02, "momentum": 0.9}
# A sequence counts up by a stride, modulo the number of words: the next word is to be told.
TRANSFORMER = {"words": 32, "length": 16, "width": 32, "heads": 4, "inner": 64, "layers": 1, "batch": 32,
               "drop": 0.1, "rate": 0.01}

TITLES = {
    "train_cnn": "training of a small CNN",
    "train_rnn_ctc": "training of a small recurrent network with CTC loss",
    "train_transformer": "training of a small transformer in mixed precision",
}
SUMMARIES = {
    "train_cnn": "convolutions, pooling, dropout, cross-entropy, SGD with momentum: all weights at the end",
    "train_rnn_ctc": "a tanh network, CTC loss, SGD with momentum: all weights at the end",
    "train_transformer": "embeddings, attention, layer norms, dropout, bfloat16 where the framework casts, Adam:"
                         " all weights at the end",
}


class Trained(dict):
    """The weights by name, and the loss of the last step."""

    def __init__(self, weights, loss):
        super().__init__(weights)
        self.loss = loss


def register(pack, name, function, **arguments):
    pack.operation(name, TITLES[name], sizes=SIZES, loss="mean loss of the last step's batch", **arguments)(function)
    pack.operations[name].summary = SUMMARIES[name]


def cnn_inputs(x, steps):
    """(patterns of the classes, noise of each example, class of each, examples of each step)"""
    pixels = CNN["side"] ** 2
    return (x.uniform("patterns", CNN["classes"], pixels), x.uniform("noise", CNN["examples"], pixels),
            x.index("classes", CNN["classes"], CNN["examples"]),
            x.index("order", CNN["examples"], steps, CNN["batch"]))


def rnn_inputs(x, steps):
    """(patterns of the labels, noise of each sequence of a batch, what is spoken less one)"""
    time = RNN["labels"] * RNN["frames"]
    return (x.uniform("patterns", RNN["symbols"], RNN["features"]),
            x.uniform("noise", RNN["batch"], time, RNN["features"]),
            x.index("spoken", RNN["symbols"] - 1, steps, RNN["batch"], RNN["labels"]))


def transformer_inputs(x, steps):
    """(first word of each sequence, its stride)"""
    shape = steps, TRANSFORMER["batch"], 1
    return x.index("first", TRANSFORMER["words"], *shape), x.index("stride", 4, *shape) + 1


def spread(shape):
    """Weights are uniform within this (He et al., "Delving deep into rectifiers", ICCV 2015); SHAPE
    without what they lead to."""
    count = 1
    for extent in shape:
        count *= int(extent)
    return (6.0 / count) ** 0.5
