"""Who takes how long: runners in interleaved rounds, in rotating order, timed with events.

A runner is a function of the launch's number; `context()` is entered around the launches of a sample. A sample is led by one untimed
launch, so that no host time and nothing that another runner left in the L2 is in it.
"""
import contextlib
import math
import time

import torch

from common.stats import rounds_that_fit

SAMPLE_LEAST = 200e-6


class Runner:
    def __init__(self, run, context=contextlib.nullcontext):
        self.run, self.context, self.launches, self.seconds = run, context, 2, []

    def sample(self):
        """Seconds per launch, over self.launches of them."""
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        with self.context():
            self.run(1)
            start.record()
            for i in range(self.launches):
                self.run(i)
            end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e-3 / self.launches

    def size(self, seconds, estimate=None):
        """Takes as many launches per sample as `seconds` hold: even, so that both sets of tensors count alike. Without an estimate of
        one launch's seconds it warms up and takes one. Returns what a sample will cost."""
        if estimate is None:
            self.sample()
            estimate = self.sample()
        self.launches = max(2, 2 * math.ceil(max(seconds, SAMPLE_LEAST) / estimate / 2))
        return estimate * (self.launches + 1)


def rounds(runners, most, sample, seconds=None, least=3):
    """Adds a sample per round to each runner's seconds. The number of rounds is `most`, or as many as fit into `seconds`, at least
    `least`. Returns it."""
    begun = time.monotonic()
    cost = sum(r.size(sample) for r in runners)
    for r in runners:
        r.sample()  # a round that does not count: the clock settles under this load
    left = None if seconds is None else seconds - (time.monotonic() - begun)
    n = rounds_that_fit(left, cost, least, most)
    for k in range(n):
        turn = k % len(runners)
        order = runners[turn:] + runners[:turn]
        for r in (order if k % 2 == 0 else order[::-1]):
            r.seconds.append(r.sample())
    return n


def warm_up(seconds=0.5):
    """Matrix products until the clock is where load puts it."""
    a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(20):
            a @ a
        torch.cuda.synchronize()
