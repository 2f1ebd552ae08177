"""Probes for distributed trainings in PyTorch: what all ranks recorded, in one trace.

    torch.distributed.init_process_group(...)
    ranks = reprod_ranks.join()           # in every rank, before any other call of the probes
    for _ in probe.iterations(inputs=...):
        model = probe.monitor_model(Model())
        parallel = DistributedDataParallel(model)
        ...
        loss.backward()                   # the ranks add up their gradients
        ranks.exchange()
        ranks.monitor_gradients(model)
        optimizer.step()
        probe.summarize_variables(model, "after")
        ranks.step()
        ...
        ranks.finish(model, loss)

Lies beside reprod_probe.py.  Rank 0 is the process whose run it is; it says what the others recorded, each
place as rankN/PLACE, in the order of the ranks.

A place of one rank depends on what the others computed as soon as they have talked.  So exchange() goes after
every communication: what is recorded from there on is taken to read what all ranks recorded before.  Where it
is missing, a place may be blamed for what another rank did.  Without probes nothing is exchanged, and steps
that are not recorded are not waited for."""
import os

import reprod_probe as probe


def join(group=None):
    """This process as one of the ranks of GROUP, of a backend that works on the CPU (gloo)."""
    import torch.distributed
    return Ranks(torch.distributed, group)


class Ranks:
    def __init__(self, distributed, group):
        self.distributed, self.group = distributed, group
        self.number, self.count = distributed.get_rank(group), distributed.get_world_size(group)
        if self.number:  # what the environment says of descriptors and files is rank 0's
            os.environ[probe.SPEAKER] = "0"
        self.run = run = probe._run()
        self.kept, self.dropped = [], 0  # what is said; how much the others could not
        self.wanted = self.gather(run.active() and bool(run.request.every or run.request.capture))[0]
        if self.number:
            run.fd, run.write = (-1 if self.wanted else None), self.keep
        if self.wanted:
            run.prefix = "rank%d/" % self.number
            run.records_made = probe.RECORDS_MAX - probe.RECORDS_MAX // self.count

    def gather(self, value):
        found = [None] * self.count
        self.distributed.all_gather_object(found, value, self.group)
        return found

    def keep(self, event):
        """What another rank than 0 would say itself."""
        if event["event"] in ("probes", "tensor"):
            self.kept.append(event)
        elif event["event"] == "end":
            self.kept.clear()

    def exchange(self):
        """In all ranks at once, after each communication."""
        run = self.run
        if not self.wanted or not (run.step_wanted() or self.is_capturing()):
            return
        with run.probe_time():
            run.flush()
            found = self.gather((self.kept, run.chain, run.chained, run.dropped))
            self.kept = []
            if self.number == 0:
                for events, _, _, _ in found[1:]:
                    for event in events:
                        run.write(event)
                dropped = sum(dropped for _, _, _, dropped in found[1:])
                run.dropped, self.dropped = run.dropped + dropped - self.dropped, dropped
            run.chain = probe.combine(chain for _, chain, _, _ in found)
            run.chained = any(chained for _, _, chained, _ in found)

    def is_capturing(self):
        """The same in all ranks, whichever of them has the place that is to be captured."""
        capture = self.run.request.capture
        return capture is not None and (self.run.iteration, self.run.step) <= capture[:2]

    def monitor_gradients(self, module):
        """Records what the ranks made of their gradients together, as allreduced/VARIABLE."""
        if self.wanted:
            probe.monitor({name: parameter.grad for name, parameter in module.named_parameters()
                           if parameter.grad is not None}, "allreduced")

    def step(self):
        """The end of a step in all ranks."""
        self.exchange()
        probe.step()

    def finish(self, weights, loss=None):
        """The end of an iteration: the run has rank 0's weights and loss.  The other ranks' are digested, so
        that replicas that went apart are seen."""
        if self.wanted:
            if self.run.step_wanted():
                self.run.record("weights", probe._leaf_of_text(probe.digest(
                    weights.state_dict() if hasattr(weights, "state_dict") else weights).encode()))
            self.exchange()
        if self.number == 0 or self.wanted:
            probe.finish(weights, loss)
