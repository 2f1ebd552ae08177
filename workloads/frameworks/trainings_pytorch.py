"""The trainings of the pack of PyTorch (trainings.py)."""
import reprod_probe
from trainings import (CNN, RNN, TRANSFORMER, Trained, cnn_inputs, register, rnn_inputs, spread,
                       transformer_inputs)


class Trainings:
    def __init__(self, pack, torch):
        self.pack, self.torch = pack, torch
        register(pack, "train_cnn", self.cnn)
        register(pack, "train_rnn_ctc", self.rnn)
        register(pack, "train_transformer", self.transformer, needs="torch.autocast", since="PyTorch 1.10")

    def train(self, x, make, loss_of, steps, optimizer_of):
        """LOSS_OF(model, step) is what OPTIMIZER_OF(parameters) makes smaller.  What a case computes."""
        torch = self.torch
        start = self.weights(x, make())

        def compute():
            torch.manual_seed(x.philox.seed % (1 << 63))
            model = make().to(self.pack.backend)
            with torch.no_grad():
                for name, parameter in model.named_parameters():
                    parameter.copy_(start[name])
            model.train()
            reprod_probe.monitor_model(model)
            optimizer, loss = optimizer_of(model.parameters()), None
            for step in range(steps):
                optimizer.zero_grad()
                loss = loss_of(model, step)
                reprod_probe.monitor(loss, "loss")
                loss.backward()
                optimizer.step()
                reprod_probe.summarize_variables(model, moment="after")
                if step + 1 < steps:
                    reprod_probe.step()
            return Trained({name: weight.detach() for name, weight in model.named_parameters()},
                           loss.detach())
        return compute

    def weights(self, x, model):
        """Of a layer norm they are ones; of what is added, zeros."""
        torch, found = self.torch, {}
        for name, parameter in model.named_parameters():
            shape = tuple(parameter.shape)
            if len(shape) > 1:
                found[name] = x.uniform("weights/" + name, *shape) * spread(shape[1:])
            else:
                make = torch.ones if "norm" in name and name.endswith("weight") else torch.zeros
                found[name] = make(shape)
        return found

    def momentum(self, of):
        return lambda parameters: self.torch.optim.SGD(parameters, lr=of["rate"], momentum=of["momentum"])

    def cnn(self, x, steps):
        torch, nn = self.torch, self.torch.nn
        patterns, noise, classes, order = cnn_inputs(x, steps)
        images = (patterns[classes] + CNN["noise"] * noise).reshape(-1, 1, CNN["side"], CNN["side"])
        first, second = CNN["channels"]

        def make():
            return nn.Sequential(
                nn.Conv2d(1, first, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2, padding=1),
                nn.Conv2d(first, second, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2, padding=1),
                nn.Flatten(), nn.Dropout(CNN["drop"]),
                nn.Linear(second * (CNN["side"] // 4) ** 2, CNN["classes"]))

        def loss_of(model, step):
            return nn.functional.cross_entropy(model(images[order[step]]), classes[order[step]])
        return self.train(x, make, loss_of, steps, self.momentum(CNN))

    def rnn(self, x, steps):
        torch, nn = self.torch, self.torch.nn
        patterns, noise, spoken = rnn_inputs(x, steps)
        spoken = spoken + 1
        time = RNN["labels"] * RNN["frames"]
        lengths = torch.full((RNN["batch"],), time), torch.full((RNN["batch"],), RNN["labels"])

        class Network(nn.Module):
            def __init__(self):
                super().__init__()
                self.recurrent = nn.RNN(RNN["features"], RNN["hidden"], batch_first=True)
                self.output = nn.Linear(RNN["hidden"], RNN["symbols"])

            def forward(self, frames):
                return self.output(self.recurrent(frames)[0])

        def loss_of(model, step):
            frames = patterns[torch.repeat_interleave(spoken[step], RNN["frames"], 1)] + RNN["noise"] * noise
            scores = torch.log_softmax(model(frames), 2).transpose(0, 1)
            return nn.functional.ctc_loss(scores, spoken[step], *lengths)
        return self.train(x, Network, loss_of, steps, self.momentum(RNN))

    def transformer(self, x, steps):
        torch, nn, of = self.torch, self.torch.nn, TRANSFORMER
        first, stride = transformer_inputs(x, steps)
        places = torch.arange(of["length"] + 1, device=first.device)
        sequences = (first + stride * places) % of["words"]
        future = torch.triu(torch.full((of["length"], of["length"]), float("-inf"), device=first.device), 1)

        class Network(nn.Module):
            def __init__(self):
                super().__init__()
                self.words = nn.Embedding(of["words"], of["width"])
                self.places = nn.Embedding(of["length"], of["width"])
                self.layers = nn.ModuleList(nn.TransformerEncoderLayer(
                    of["width"], of["heads"], of["inner"], of["drop"], batch_first=True) for _ in range(of["layers"]))
                self.output = nn.Linear(of["width"], of["words"])

            def forward(self, words):
                rows = self.words(words) + self.places(places[:-1])
                for layer in self.layers:
                    rows = layer(rows, src_mask=future)
                return self.output(rows)

        def loss_of(model, step):
            with torch.autocast(device_type=first.device.type, dtype=torch.bfloat16):
                scores = model(sequences[step, :, :-1])
            return nn.functional.cross_entropy(scores.float().reshape(-1, of["words"]),
                                               sequences[step, :, 1:].reshape(-1))
        return self.train(x, Network, loss_of, steps,
                          lambda parameters: torch.optim.Adam(parameters, lr=of["rate"]))
