#!/usr/bin/env python3
"""Draws what `bcisim figures` found: figure-ID.svg and .png beside its figures.json.

Usage: plot.py FOLDER
"""

import json
import math
import pathlib
import sys
import textwrap

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

# Colours that stay apart in print and for the colour-blind (Okabe and Ito's).
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999"]
BAR_SPACE = 0.8
SMALL = 8  # points, of what is written at ticks and in legends


def shown(name):
    """A trace's words, which may be anything, as text to draw: no line ends, no formulas between dollars."""
    return "".join(letter if letter.isprintable() else "?" for letter in name).replace("$", r"\$")


def draw_paper(axes, places, heights, width):
    """A mark for each number that the paper tells."""
    told = [(place, height) for place, height in zip(places, heights) if height is not None]
    for index, (place, height) in enumerate(told):
        axes.plot([place - width / 2, place + width / 2], [height, height], color="black", linewidth=2,
                  solid_capstyle="butt", clip_on=False, label=None if index else "stated in the paper")


def draw_bars(axes, figure):
    series = figure["series"]
    width = BAR_SPACE / len(series)
    marks = []
    for index, one in enumerate(series):
        places = [i - BAR_SPACE / 2 + (index + 0.5) * width for i in range(len(figure["categories"]))]
        values = [0 if value is None else value for value in one["values"]]
        axes.bar(places, values, width * 0.92, color=COLOURS[index % len(COLOURS)], label=shown(one["name"]))
        marks += zip(places, one["paper"])
    draw_paper(axes, *zip(*marks), width)


def sums(columns):
    """What each series reaches when it stands upon those before it; nothing where one of them is missing."""
    reached = [0.0] * len(columns[0])
    heights = []
    for column in columns:
        reached = [None if a is None or b is None else a + b for a, b in zip(reached, column)]
        heights.append(reached)
    return heights


def draw_stacked(axes, figure):
    """Returns where the axis begins. Small parts stand upon a large one: most of that is cut off."""
    places = range(len(figure["categories"]))
    tops = sums([[value or 0.0 for value in one["values"]] for one in figure["series"]])
    bottoms = [[0.0] * len(places)] + tops
    for index, one in enumerate(figure["series"]):
        axes.bar(places, [value or 0.0 for value in one["values"]], BAR_SPACE, bottom=bottoms[index],
                 color=COLOURS[index % len(COLOURS)], label=shown(one["name"]))
    paper = sums([one["paper"] for one in figure["series"]])
    # The sum of all that the paper tells is a whole, which says nothing.
    marks = [(place, height) for heights in paper for place, height in zip(places, heights)
             if height is not None and abs(height - 100) > 0.01]
    if marks:
        draw_paper(axes, *zip(*marks), BAR_SPACE)
    lowest = min(tops[0] + [height for _, height in marks])
    begins = max(0, math.floor((lowest - 1) / 5) * 5)
    highest = max(tops[-1] + [height for _, height in marks] + [begins + 1])
    axes.set_ylim(begins, highest + 0.03 * (highest - begins))
    return begins


def mark_cut(axes):
    """Two strokes through the foot of the vertical axis: it does not begin at 0."""
    axes.plot([0, 0], [0.03, 0.05], transform=axes.transAxes, linestyle="none", marker=[(-1, -0.5), (1, 0.5)],
              markersize=9, color="black", clip_on=False)


def label_categories(axes, names, inches):
    axes.set_xticks(range(len(names)))
    axes.tick_params(axis="x", labelsize=SMALL)
    letters = int(inches / len(names) / 0.075)
    if len(names) <= 10:
        axes.set_xticklabels(["\n".join(textwrap.wrap(shown(name), max(letters, 8))) for name in names])
    else:
        axes.set_xticklabels([shown(name) for name in names], rotation=60, ha="right", rotation_mode="anchor")


def draw(figure, folder):
    categories = figure["categories"]
    is_stacked = figure["drawing"] == "stacked"
    wide = max(6.4, 0.55 * len(categories) * (1 if is_stacked else max(2, len(figure["series"]) / 2)))
    inches = min(wide, 13)
    picture, axes = plt.subplots(figsize=(inches, 4.6))
    unit = figure["unit"]
    if is_stacked:
        begins = draw_stacked(axes, figure)
        if begins > 0:
            unit += f" (axis begins at {begins})"
            mark_cut(axes)
    else:
        draw_bars(axes, figure)
        axes.axhline(0, color="black", linewidth=0.8)
    is_numbered = figure["id"][0].isdigit()
    axes.set_title(f"Figure {figure['id']}: {figure['title']}" if is_numbered else figure["title"], pad=12)
    axes.set_ylabel(unit)
    axes.set_xlim(-0.6, len(categories) - 0.4)
    label_categories(axes, categories, inches * 0.77)
    axes.grid(axis="y", linewidth=0.4, alpha=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    handles, names = axes.get_legend_handles_labels()
    # The paper's marks last, behind what was simulated.
    order = sorted(range(len(names)), key=lambda i: names[i] == "stated in the paper")
    axes.legend([handles[i] for i in order], [names[i] for i in order], loc="upper left", bbox_to_anchor=(1.0, 1.0),
                fontsize=SMALL, frameon=False)
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
