#!/usr/bin/env python3
"""Draws what `bcisim figures` found: figure-ID.svg and .png beside its figures.json.

Usage: plot.py FOLDER
"""

import json
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

# Colours that stay apart in print and for the colour-blind (Okabe and Ito's).
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999"]
BAR_SPACE = 0.8


def wrapped(name):
    """A category's name on two lines where it has two parts."""
    return name.replace("-", "\n", 1) if "-" in name else name.replace(" ", "\n", 1)


def draw_bars(axes, figure):
    series = figure["series"]
    width = BAR_SPACE / len(series)
    told = False
    for index, one in enumerate(series):
        places = [i - BAR_SPACE / 2 + (index + 0.5) * width for i in range(len(figure["categories"]))]
        values = [0 if value is None else value for value in one["values"]]
        axes.bar(places, values, width * 0.92, color=COLOURS[index % len(COLOURS)], label=one["name"])
        for place, paper in zip(places, one["paper"]):
            if paper is not None:
                axes.plot([place - width / 2, place + width / 2], [paper, paper], color="black", linewidth=2,
                          label=None if told else "stated in the paper")
                told = True


def draw_stacked(axes, figure):
    bottom = [0.0] * len(figure["categories"])
    lowest = min(value for value in figure["series"][0]["values"])
    for index, one in enumerate(figure["series"]):
        axes.bar(range(len(bottom)), one["values"], BAR_SPACE, bottom=bottom,
                 color=COLOURS[index % len(COLOURS)], label=one["name"])
        bottom = [a + b for a, b in zip(bottom, one["values"])]
    told = False
    for place in range(len(bottom)):
        height = 0.0
        for one in figure["series"]:
            if one["paper"][place] is None:
                continue
            height += one["paper"][place]
            axes.plot([place - BAR_SPACE / 2, place + BAR_SPACE / 2], [height, height], color="black", linewidth=2,
                      label=None if told else "stated in the paper")
            told = True
    # Small parts upon a large one: the common part is cut off, and the axis says so.
    axes.set_ylim(bottom=max(0, (lowest - 5) // 10 * 10 - 10))


def draw(figure, folder):
    categories = figure["categories"]
    inches = max(6.4, 0.55 * len(categories) * (1 if figure["drawing"] == "stacked" else max(2, len(figure["series"]) / 2)))
    picture, axes = plt.subplots(figsize=(min(inches, 13), 4.6))
    if figure["drawing"] == "stacked":
        draw_stacked(axes, figure)
    else:
        draw_bars(axes, figure)
    is_numbered = figure["id"][0].isdigit()
    axes.set_title(f"Figure {figure['id']}: {figure['title']}" if is_numbered else figure["title"], pad=12)
    axes.set_ylabel(figure["unit"])
    axes.set_xticks(range(len(categories)))
    many = len(categories) > 10
    axes.set_xticklabels([name if many else wrapped(name) for name in categories],
                         rotation=60 if many else 0, ha="right" if many else "center", fontsize=8)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.grid(axis="y", linewidth=0.4, alpha=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8, frameon=False)
    for suffix in ("svg", "png"):
        # The same data give the same file.
        metadata = {"Date": None} if suffix == "svg" else {"Software": None}
        picture.savefig(folder / f"figure-{figure['id']}.{suffix}", dpi=150, bbox_inches="tight", metadata=metadata)
    plt.close(picture)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    plt.rcParams["svg.hashsalt"] = "bcisim"
    for figure in json.loads((folder / "figures.json").read_text())["figures"]:
        if figure["drawing"] != "table":
            draw(figure, folder)


if __name__ == "__main__":
    main()
