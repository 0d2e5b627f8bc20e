"""A training loop stages its parameters for a checkpoint: between two steps, or, by haul, while it computes the next one.

The step reads the parameters, so the copy may go on until the optimizer is about to write them.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the other core is the mover's

import time

import numpy as np

import haul
from figures import arguments, quartiles, told, write

LAYERS, WIDTH = 16, 1024  # 64 MiB of float32


class Model:
    def __init__(self):
        random = np.random.default_rng(1)
        self.parameters = random.standard_normal((LAYERS, WIDTH, WIDTH), np.float32) / 32
        self.samples = random.standard_normal((64, WIDTH), np.float32)
        self.gradient = np.empty((WIDTH, WIDTH), np.float32)

    def compute(self):
        """Forward and backward: reads the parameters."""
        activations = [self.samples]
        for layer in self.parameters:
            activations.append(np.maximum(activations[-1] @ layer, 0))
        error = activations[-1]
        for layer, activation in zip(self.parameters[::-1], activations[-2::-1]):
            np.matmul(activation.T, error, out=self.gradient)
            error = error @ layer.T

    def update(self):
        """The optimizer: writes the parameters."""
        self.parameters[0] -= 1e-6 * self.gradient


def step(model, staged, way):
    """Seconds of a step that stages the parameters as they were before it."""
    begun = time.perf_counter()
    ticket = None
    if way == "between":
        staged[:] = model.parameters
    elif way == "hidden":
        ticket = haul.copy(staged, model.parameters)
    model.compute()
    if ticket is not None:
        ticket.wait()
    model.update()
    return time.perf_counter() - begun


def main():
    options = arguments(__doc__)
    model = Model()
    staged = np.empty_like(model.parameters)
    taken = {"none": [], "between": [], "hidden": []}
    for round_number in range(options.rounds + 1):
        for way, times in taken.items():
            before = model.parameters.copy()
            seconds = step(model, staged, way)
            if way != "none" and not np.array_equal(staged, before):
                raise SystemExit("checkpoint: WRONG bytes were staged")
            if round_number > 0:  # the first round makes pages
                times.append(seconds)
    blocking = np.subtract(taken["between"], taken["none"])
    hidden = np.subtract(taken["hidden"], taken["none"])
    share = hidden / np.median(blocking)
    print(f"a step without a checkpoint: {told(taken['none'], ' ms', 1e3)}")
    print(f"staging 64 MiB between the steps adds {told(blocking, ' ms', 1e3)}")
    print(f"staging them by haul adds {told(hidden, ' ms', 1e3)}, a share of {told(share)}")
    print("every byte of each checkpoint is right")
    write(options.json, {"step_s": quartiles(taken["none"]), "blocking_s": quartiles(blocking),
                         "hidden_s": quartiles(hidden), "share": quartiles(share)})


if __name__ == "__main__":
    main()
