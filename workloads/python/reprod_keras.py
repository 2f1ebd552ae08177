"""Probes for Keras, 2 and 3, with TensorFlow: layers, gradients and the steps of the optimizer.

    import reprod_keras
    import reprod_probe as probe

    model.compile(optimizer, loss)
    reprod_keras.monitor_keras(model)
    model.fit(x, y)                       # or a loop with a GradientTape and apply_gradients
    probe.finish(reprod_keras.weights(model), loss)

Lies beside reprod_probe.py, whose records these are:

 - LAYER/forward, with the layer's inputs, its variables and what was recorded inside it as what it reads;
 - LAYER/backward, the gradient that reaches what the layer returned;
 - model/input, what reaches the model from outside, and loss, where Keras computes it;
 - gradient/LAYER.VARIABLE, what the optimizer is given, then variable/LAYER.VARIABLE/after and
   optimizer/NUMBER, what it made of them: this ends the step.

Compiled functions (tf.function, fit) have the probes in them: a call from the graph for each place, in the
program's order.  The body of a compiled loop has no such order, so what is called there (the cell of a
recurrent layer) is recorded with the layer around it.  XLA has no such calls, so a model that Keras would
compile with it is compiled without while probes are on; a tf.function with jit_compile=True raises.  Where no
probes are requested nothing is changed at all."""
import functools
import re
import sys

import reprod_probe as probe

WATCHED = "reprod_watched"
LOOPS = ("WhileBodyFuncGraph", "WhileCondFuncGraph")


def monitor_keras(model, optimizer=None, name=""):
    """Puts probes into every layer of MODEL, which is built, and into its optimizer: that of compile(),
    or OPTIMIZER, for a loop of one's own.  Before the first step; returns MODEL."""
    run = probe._started()
    if run is None or not (run.request.every or run.request.capture):
        return model
    layers = list(layers_of(model, name))
    probes = Probes(run, [variable for variable in model.weights])
    for path, layer in layers:
        probes.watch_layer(layer, path)
    optimizer = optimizer if optimizer is not None else getattr(model, "optimizer", None)
    if optimizer is not None:
        probes.watch_optimizer(optimizer, names_of(layers))
    if hasattr(model, "compute_loss"):
        watch(model, "compute_loss", probes.watched_loss)
    leave_xla(model)
    return model


def weights(model):
    """{LAYER.VARIABLE: its value}: for finish().  Keras' own names count what the process made before."""
    layers = list(layers_of(model, ""))
    names = names_of(layers)
    return {names[id(variable)]: variable.numpy() for variable in model.weights if id(variable) in names}


# Names

def snake(name):
    """As Keras names a layer after its class."""
    name = re.sub("(.)([A-Z][a-z0-9]+)", r"\1_\2", re.sub(r"\W+", "", name))
    return re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()


def children_of(layer):
    """What LAYER is made of.  The graph inside a Sequential is the same layers again."""
    parts = layer.layers if hasattr(layer, "layers") else layer._flatten_layers(recursive=False, include_self=False)
    return [part for part in parts if type(part).__name__ != "InputLayer"]


def layers_of(layer, path, known=None):
    """(path, layer) of LAYER and all below.  A number that Keras appended counts the layers that the process
    made before: here they are counted in their parent."""
    known = set() if known is None else known
    if id(layer) in known:
        return
    known.add(id(layer))
    yield path or "model", layer
    counts = {}
    for part in children_of(layer):
        base = snake(type(part).__name__)
        if base.endswith("op_lambda"):  # Keras 2 names an operation between layers after the function
            base = re.sub(r"_\d+$", "", part.name)
        own = base if re.fullmatch(re.escape(base) + r"(_\d+)?", part.name) else part.name
        counts[own] = counts.get(own, 0) + 1
        own += "_%d" % (counts[own] - 1) if counts[own] > 1 else ""
        yield from layers_of(part, ".".join(filter(None, (path, own))), known)


def names_of(layers):
    """{id of a variable: LAYER.VARIABLE}, by the innermost layer that has it."""
    names, owners = {}, {}
    for path, layer in layers:
        for variable in layer.weights:
            owners[id(variable)] = (path, variable)  # an inner one comes later
    taken = set()
    for key, (path, variable) in owners.items():
        own = "%s.%s" % (path, variable.name.split(":")[0].split("/")[-1])
        while own in taken:
            own += "'"
        taken.add(own)
        names[key] = own
    return names


def watch(owner, name, make):
    """OWNER's method NAME becomes what MAKE makes of it, once."""
    method = getattr(owner, name)
    if not hasattr(method, WATCHED):
        watched = functools.wraps(method)(make(method))
        setattr(watched, WATCHED, True)
        setattr(owner, name, watched)


def monitor_graph(run, value, name):
    """What probe.monitor does with VALUE, which has tensors of a graph that is being made."""
    probes = Probes(run, [])
    if in_loop():
        return value
    for key, part in tensors_of(value):
        ask(functools.partial(probes.record, place_of(name, key)), [part])
    return map_tensors(lambda key, part: probes.with_gradient(probe._gradient_place(place_of(name, key)), part),
                       value)


def leave_xla(model):
    if getattr(model, "optimizer", None) is None:
        return  # no compile(): the loop is the program's own
    if getattr(model, "jit_compile", None):
        model.jit_compile = False
        probe._say_once("probes are on: %s is compiled without XLA, and may have other bits" % model.name)
    model.train_function = None  # made again with the probes in it


# What is recorded

class Probes:
    """Of one model with VARIABLES.  What is open are calls of layers: digests of what each read, and leaves."""

    def __init__(self, run, variables):
        self.run, self.variables, self.open, self.applying = run, variables, [], False

    def record(self, place, value, reads=None, leaves=()):
        run = self.run
        if not run.probing(place):
            return
        try:
            leaf = probe.leaf_of(value)
        except TypeError as error:
            probe._say_once("%s is not recorded: %s" % (place, error))
            return
        out = run.record(place, leaf, reads, leaves)
        if self.open:
            self.open[-1][0].append(out)

    # Called with arrays, when the program computes

    def enter(self, path, keys, count, *values):
        """The first COUNT of VALUES are inputs, and KEYS their names; the others are variables."""
        run = self.run
        if not run.probing():
            self.open.append(None)
            return
        with run.probe_time():
            leaves = [(key, probe.leaf_of(value)) for key, value in zip(keys, values)
                      if value.dtype.kind not in "OSU"]
            if not [frame for frame in self.open if frame]:
                for key, leaf in leaves:
                    self.record_leaf(probe._place_name("%s/input/%s" % (path, key)), leaf)
            reads = [leaf.digest() for _, leaf in leaves]
            reads += [probe.leaf_of(value).digest() for value in values[count:]]
            kept = [(key, leaf.copy() if run.captures(path + "/forward") else leaf) for key, leaf in leaves]
            self.open.append((reads, kept))

    def record_leaf(self, place, leaf):
        if self.run.probing(place):
            self.run.record(place, leaf)

    def leave(self, path, keys, *values):
        frame = self.open.pop() if self.open else None
        if frame is None:
            return
        with self.run.probe_time():
            reads = probe._digest_of_places(frame[0])
            for key, value in zip(keys, values):
                self.record(place_of(path + "/forward", key), value, reads, frame[1])

    def end_step(self, *_):
        self.open.clear()  # what an exception left
        probe.step()

    # Into the program

    def watch_layer(self, layer, path):
        def make(call):
            def watched(*args, **kwargs):
                if in_loop():
                    return call(*args, **kwargs)
                given = tensors_of(dict({str(index): value for index, value in enumerate(args)}, **kwargs))
                variables = [value_of(variable) for variable in layer.weights]
                ask(functools.partial(self.enter, path, [key for key, _ in given], len(given)),
                    [value for _, value in given] + variables)
                result = call(*args, **kwargs)
                found = tensors_of(result)
                ask(functools.partial(self.leave, path, [key for key, _ in found]), [value for _, value in found])
                return map_tensors(lambda key, value: self.with_gradient(place_of(path + "/backward", key), value),
                                   result)
            return watched
        watch(layer, "call", make)

    def with_gradient(self, place, value):
        """VALUE; the gradient that reaches it is recorded."""
        tf = sys.modules["tensorflow"]
        if not value.dtype.is_floating:
            return value

        @tf.custom_gradient
        def same(value):
            def gradient(upstream):
                for key, part in tensors_of(upstream):
                    ask(functools.partial(self.record, place_of(place, key)), [part])
                return upstream
            return tf.identity(value), gradient
        return same(value)

    def watched_loss(self, compute):
        def watched(*args, **kwargs):
            loss = compute(*args, **kwargs)
            for key, part in tensors_of(loss):
                ask(functools.partial(self.record, place_of("loss", key)), [part])
            return loss
        return watched

    def watch_optimizer(self, optimizer, names):
        """Keras 3 applies by `apply`, too, which its apply_gradients calls: the outer one counts."""
        def make_apply(apply):
            def watched(grads, trainable_variables=None, **kwargs):
                variables = optimizer._trainable_variables if trainable_variables is None else trainable_variables
                grads, variables = list(grads), list(variables)
                return self.around(optimizer, names, grads, variables,
                                   lambda: apply(grads, trainable_variables, **kwargs))
            return watched

        def make_apply_gradients(apply_gradients):
            def watched(grads_and_vars, *args, **kwargs):
                pairs = list(grads_and_vars)
                return self.around(optimizer, names, *zip(*pairs), lambda: apply_gradients(pairs, *args, **kwargs))
            return watched
        watch(optimizer, "apply_gradients", make_apply_gradients)
        if hasattr(optimizer, "apply"):
            watch(optimizer, "apply", make_apply)

    def around(self, optimizer, names, gradients, variables, apply):
        if self.applying:
            return apply()
        named = [names.get(id(variable)) or variable.name.split(":")[0] for variable in variables]
        for name, gradient in zip(named, gradients):
            for key, part in tensors_of(gradient):
                ask(functools.partial(self.record, place_of("gradient/" + name, key)), [part])
        self.applying = True
        try:
            result = apply()
        finally:
            self.applying = False
        own = {id(variable) for variable in self.variables}
        for variable in self.variables + [variable for variable in variables if id(variable) not in own]:
            name = names.get(id(variable)) or variable.name.split(":")[0]
            ask(functools.partial(self.record, place_of("variable/%s/after" % name, "")), [value_of(variable)])
        state = optimizer.variables
        for index, variable in enumerate(state() if callable(state) else state):
            ask(functools.partial(self.record, place_of("optimizer/%d" % index, "")), [value_of(variable)])
        ask(self.end_step, [])
        return result


# TensorFlow

def value_of(variable):
    return sys.modules["tensorflow"].convert_to_tensor(variable)


def place_of(*parts):
    return probe._place_name("/".join(filter(None, parts)))


def tensors_of(value):
    """(name, tensor) of everything in VALUE that is one, or a variable; of sparse ones their parts."""
    tf = sys.modules["tensorflow"]
    found = []
    for path, part in flat(value):
        if isinstance(part, tf.IndexedSlices):
            found += [(path + "/values" if path else "values", part.values),
                      (path + "/indices" if path else "indices", part.indices)]
        elif isinstance(part, tf.Tensor):
            found.append((path, part))
        elif isinstance(part, tf.Variable) or hasattr(part, "__tf_tensor__") and hasattr(part, "dtype"):
            found.append((path, value_of(part)))
        elif isinstance(part, (tf.SparseTensor, tf.RaggedTensor)):
            found += [("/".join(filter(None, (path, str(index)))), inner)
                      for index, inner in enumerate(tf.nest.flatten(part, expand_composites=True))]
    return found


def flat(value, path=""):
    """(path, part) of nested dicts, lists and tuples; a call's only argument is not numbered."""
    if isinstance(value, dict):
        for key in value:
            yield from flat(value[key], "/".join(filter(None, (path, str(key)))))
    elif isinstance(value, (list, tuple)):
        for index, part in enumerate(value):
            yield from flat(part, "/".join(filter(None, (path, str(index)))))
    elif value is not None:
        yield path, value


def map_tensors(function, value, path=""):
    tf = sys.modules["tensorflow"]
    if isinstance(value, dict):
        return type(value)((key, map_tensors(function, part, "/".join(filter(None, (path, str(key))))))
                           for key, part in value.items())
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(map_tensors(function, part, "/".join(filter(None, (path, str(index)))))
                           for index, part in enumerate(value))
    return function(path, value) if isinstance(value, tf.Tensor) else value


def in_graph(value):
    """Whether VALUE has tensors of a graph that is being made."""
    tf = sys.modules["tensorflow"]
    return not tf.executing_eagerly() and any(
        isinstance(part, tf.Tensor) and not hasattr(part, "numpy") for _, part in flat(value))


def in_loop():
    graph = sys.modules["tensorflow"].compat.v1.get_default_graph()
    while graph is not None:
        if type(graph).__name__ in LOOPS:
            return True
        graph = getattr(graph, "outer_graph", None)
    return False


def ask(function, tensors):
    """Calls FUNCTION with the arrays that TENSORS are: now, or when the graph that is being made computes."""
    tf = sys.modules["tensorflow"]
    if tf.executing_eagerly():
        function(*(tensor.numpy() for tensor in tensors))
        return

    def called(*arrays):
        function(*arrays)
    tf.numpy_function(called, tensors, [])
