"""The trainings of the pack of TensorFlow, with Keras (trainings.py)."""
import reprod_keras
import reprod_probe
from trainings import (CNN, RNN, TRANSFORMER, Trained, cnn_inputs, register, rnn_inputs, spread,
                       transformer_inputs)

FROM_INPUTS = ("kernel", "embeddings")  # the other weights are the ones and zeros that Keras makes


class Trainings:
    def __init__(self, pack, tf):
        self.pack, self.tf = pack, tf
        needs = {"needs": "tensorflow.keras.utils.set_random_seed", "since": "TensorFlow 2.7"}
        register(pack, "train_cnn", self.cnn, **needs)
        register(pack, "train_rnn_ctc", self.rnn, **needs)
        register(pack, "train_transformer", self.transformer,
                 needs=(needs["needs"], "tensorflow.keras.layers.MultiHeadAttention"), since="TensorFlow 2.7")

    def train(self, x, make, loss_of, batches, make_optimizer):
        """LOSS_OF(model, *batch) is what the optimizer makes smaller, for each batch of BATCHES, tensors
        of [step, ...].  What a case computes."""
        tf = self.tf
        start = self.weights(x, make())

        def compute():
            tf.keras.utils.set_random_seed(x.philox.seed % (1 << 32))
            model, optimizer = make(), make_optimizer()
            for index, value in start.items():
                model.trainable_weights[index].assign(value)
            reprod_keras.monitor_keras(model, optimizer)

            @tf.function
            def train_step(*batch):
                with tf.GradientTape() as tape:
                    loss = reprod_probe.monitor(loss_of(model, *batch), "loss")
                variables = model.trainable_variables
                optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
                return loss

            loss = None
            for step in range(batches[0].shape[0]):
                loss = train_step(*(tensor[step] for tensor in batches))
            return Trained({"w%d" % index: tf.convert_to_tensor(weight)
                            for index, weight in enumerate(model.trainable_weights)}, loss)
        return compute

    def weights(self, x, model):
        """By their number in the model: their names are of a version."""
        found = {}
        for index, weight in enumerate(model.trainable_weights):
            shape = tuple(weight.shape)
            if any(word in weight.name for word in FROM_INPUTS):
                found[index] = x.uniform("w%d" % index, *shape) * spread(shape[:-1])
        return found

    def momentum(self, of):
        return lambda: self.tf.keras.optimizers.SGD(of["rate"], momentum=of["momentum"])

    def cnn(self, x, steps):
        tf, keras = self.tf, self.tf.keras
        patterns, noise, classes, order = cnn_inputs(x, steps)
        images = tf.reshape(tf.gather(patterns, classes) + CNN["noise"] * noise, [-1, CNN["side"], CNN["side"], 1])
        first, second = CNN["channels"]

        def make():
            layers = keras.layers
            model = keras.Sequential([
                layers.Conv2D(first, 3, padding="same", activation="relu"), layers.MaxPooling2D(3, 2, padding="same"),
                layers.Conv2D(second, 3, padding="same", activation="relu"), layers.MaxPooling2D(3, 2, padding="same"),
                layers.Flatten(), layers.Dropout(CNN["drop"]), layers.Dense(CNN["classes"])])
            model.build((None, CNN["side"], CNN["side"], 1))
            return model

        def loss_of(model, images, classes):
            return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
                classes, model(images, training=True)))
        return self.train(x, make, loss_of, (tf.gather(images, order), tf.gather(classes, order)), self.momentum(CNN))

    def rnn(self, x, steps):
        tf, keras = self.tf, self.tf.keras
        patterns, noise, spoken = rnn_inputs(x, steps)
        spoken = tf.cast(spoken + 1, "int32")
        time = RNN["labels"] * RNN["frames"]
        frames = tf.gather(patterns, tf.repeat(spoken, RNN["frames"], axis=2)) + RNN["noise"] * noise

        def make():
            model = keras.Sequential([keras.layers.SimpleRNN(RNN["hidden"], return_sequences=True),
                                      keras.layers.Dense(RNN["symbols"])])
            model.build((None, time, RNN["features"]))
            return model

        def loss_of(model, frames, spoken):
            batch = [RNN["batch"]]
            return tf.reduce_mean(tf.nn.ctc_loss(
                spoken, model(frames, training=True), tf.fill(batch, RNN["labels"]), tf.fill(batch, time),
                logits_time_major=False, blank_index=0))
        return self.train(x, make, loss_of, (frames, spoken), self.momentum(RNN))

    def transformer(self, x, steps):
        tf, keras, of = self.tf, self.tf.keras, TRANSFORMER
        first, stride = transformer_inputs(x, steps)
        first, stride = first.numpy(), stride.numpy()  # a GPU has no code for some of this
        sequences = tf.constant((first + stride * range(of["length"] + 1)) % of["words"])
        keras.mixed_precision.set_global_policy("mixed_bfloat16")  # of this run, which is a process

        def make():
            layers = keras.layers
            words = keras.Input((of["length"],), dtype="int64")
            places = keras.Input((of["length"],), dtype="int64")
            rows = layers.Add()([layers.Embedding(of["words"], of["width"])(words),
                                 layers.Embedding(of["length"], of["width"])(places)])
            for _ in range(of["layers"]):
                heard = layers.MultiHeadAttention(of["heads"], of["width"] // of["heads"], dropout=of["drop"])(
                    rows, rows, use_causal_mask=True)
                rows = layers.LayerNormalization()(layers.Add()([rows, layers.Dropout(of["drop"])(heard)]))
                inner = layers.Dense(of["width"])(layers.Dense(of["inner"], activation="relu")(rows))
                rows = layers.LayerNormalization()(layers.Add()([rows, layers.Dropout(of["drop"])(inner)]))
            return keras.Model([words, places], layers.Dense(of["words"], dtype="float32")(rows))

        def loss_of(model, sequences):
            words = sequences[:, :-1]
            places = tf.zeros_like(words) + tf.constant(list(range(of["length"])), "int64")
            return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
                sequences[:, 1:], model([words, places], training=True)))
        return self.train(x, make, loss_of, (sequences,), lambda: keras.optimizers.Adam(of["rate"]))
