"""Calls as CUDA graphs, and graphs raced: in rounds, in random order, each sample led by a replay that does not count.

A contender is a function of the call's number that returns its output. A graph holds so many calls, back to back, that it lasts about
`lasts` seconds, and every set of tensors in it as often as every other.
"""
import math
import time

import torch

from common.stats import calls_that_fill, rounds_that_fit


failed = []  # graphs whose capture failed live on: PyTorch's allocator may still ask them


class Graph:
    """`calls` calls of run, captured. `out` is the output of the last call on the first of the sets. The graph knows addresses alone:
    what run holds lives as long as it."""

    def __init__(self, run, calls, sets):
        self.run, self.calls, self.graph = run, calls, torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):  # other threads may load kernels meanwhile
                for i in range(calls):
                    out = run(i)
                    if i == calls - sets:
                        self.out = out
                    del out
        except Exception as e:
            failed.append(self.graph)
            raise (e.__context__ or e) from None  # the call's own error, not that of the capture which it ended

    def replay(self):
        self.graph.replay()

    def sample(self):
        """Seconds per call."""
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        self.graph.replay()
        start.record()
        self.graph.replay()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e-3 / self.calls


def capture(run, sets=1, lasts=1e-3):
    """A graph of run. Libraries make themselves ready in calls on a side stream first, as capturing asks for."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for i in range(2):
            run(i)
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    trial = Graph(run, sets * math.ceil(4 / sets), sets)
    seconds = min(trial.sample() for _ in range(3))
    calls = calls_that_fill(lasts, seconds, sets)
    return trial if calls <= trial.calls else Graph(run, calls, sets)


def race(graphs, rng, most, seconds=None, least=5):
    """{name: [seconds per call of each round]} of {name: Graph}. The number of rounds is `most`, or as many as fit into `seconds`, at
    least `least`."""
    begun = time.monotonic()
    for g in graphs.values():
        g.sample()  # a round that does not count: the clock settles under this load
    cost = time.monotonic() - begun
    out = {name: [] for name in graphs}
    for _ in range(rounds_that_fit(None if seconds is None else seconds - cost, cost, least, most)):
        names = list(graphs)
        rng.shuffle(names)
        for name in names:
            out[name].append(graphs[name].sample())
    return out
