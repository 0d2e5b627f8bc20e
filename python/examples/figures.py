"""What the examples share: quartiles of measurements, and how they are told."""

import argparse
import json

import numpy as np


def arguments(text):
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("--rounds", type=int, default=15, help="how often each way has its turn (default 15)")
    parser.add_argument("--json", metavar="FILE", help="write the figures to this file, too")
    return parser.parse_args()


def quartiles(values):
    low, middle, high = np.percentile(np.asarray(values, float), [25, 50, 75])
    return {"median": float(middle), "low": float(low), "high": float(high)}


def told(values, unit="", scale=1.0):
    found = quartiles(values)
    low, middle, high = (found[name] * scale for name in ("low", "median", "high"))
    return f"{middle:.3g}{unit} ({low:.3g} to {high:.3g})"


def write(path, figures):
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)
            file.write("\n")
