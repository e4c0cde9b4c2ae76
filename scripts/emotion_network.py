"""Trains the emotion predictor's small networks in NumPy: two hidden layers, dropout, noise on the inputs, AdamW."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

HIDDEN = (96, 48)
EPOCHS, BATCH, STEP, DECAY = 12, 256, 2e-3, 1e-3
NOISE, DROP, SMOOTH = 0.5, 0.4, 0.05  # chosen with Festival left out and on half of the actors; see the model's page

Layers = list[tuple[np.ndarray, np.ndarray]]


def train(z: np.ndarray, labels: np.ndarray, classes: int, seed: int) -> Layers:
    """Layers fitted to standardised rows; every class weighs the same."""
    rng = np.random.default_rng(seed)
    sizes = (z.shape[1], *HIDDEN, classes)
    layers = [(rng.normal(0, np.sqrt(2 / a), (a, b)), np.zeros(b)) for a, b in pairwise(sizes)]
    moments = [[(np.zeros_like(p), np.zeros_like(p)) for p in layer] for layer in layers]
    weight = 1 / np.bincount(labels, minlength=classes)
    weight = weight / weight.mean()
    wanted = np.full((len(z), classes), SMOOTH / classes)
    wanted[np.arange(len(z)), labels] += 1 - SMOOTH
    steps = EPOCHS * -(-len(z) // BATCH)
    count = 0
    for _ in range(EPOCHS):
        order = rng.permutation(len(z))
        for start in range(0, len(z), BATCH):
            rows = order[start : start + BATCH]
            gradients = _gradients(layers, z[rows], wanted[rows], weight[labels[rows]], rng)
            count += 1
            rate = STEP * 0.5 * (1 + np.cos(np.pi * count / steps))
            for at, (layer, gradient) in enumerate(zip(layers, gradients, strict=True)):
                layers[at] = tuple(  # type: ignore[call-overload]
                    _moved(p, g, moments[at], k, rate, count)
                    for k, (p, g) in enumerate(zip(layer, gradient, strict=True))
                )
    return layers


def _gradients(
    layers: Layers, z: np.ndarray, wanted: np.ndarray, weight: np.ndarray, rng: np.random.Generator
) -> list[tuple[np.ndarray, np.ndarray]]:
    x = z + NOISE * rng.standard_normal(z.shape)
    inputs, masks = [], []
    for at, (w, b) in enumerate(layers):
        inputs.append(x)
        x = x @ w + b
        if at < len(layers) - 1:
            mask = (x > 0) * (rng.random(x.shape) >= DROP) / (1 - DROP)
            masks.append(mask)
            x = x * mask
    likely = np.exp(x - x.max(1, keepdims=True))
    likely /= likely.sum(1, keepdims=True)
    back = (likely - wanted) * (weight / weight.sum())[:, None]
    out = []
    for at in range(len(layers) - 1, -1, -1):
        out.append((inputs[at].T @ back, back.sum(0)))
        if at:
            back = (back @ layers[at][0].T) * masks[at - 1]
    return out[::-1]


def _moved(p: np.ndarray, g: np.ndarray, moments: list, k: int, rate: float, count: int) -> np.ndarray:
    first, second = moments[k]
    first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g**2
    moments[k] = first, second
    step = first / (1 - 0.9**count) / (np.sqrt(second / (1 - 0.999**count)) + 1e-8)
    return np.asarray(p * (1 - rate * DECAY) - rate * step)
