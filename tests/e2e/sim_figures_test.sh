#!/bin/bash
# bcisim figures on the first instructions of the traces in the source tree: the numbers are those of
# sim_golden_figures.json, on any number of threads and by any compiler; what the schemes are, they keep
# to; data and plots are there.
#
# When a model changed on purpose: `tests/e2e/sim_figures_test.sh --renew` writes sim_golden_figures.json
# anew, with the bcisim of build/release (or of $E2E_BUILD); look at its diff before it is committed.
set -u
E2E_SOURCE=${E2E_SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
E2E_BUILD=${E2E_BUILD:-$E2E_SOURCE/build/release}
. "$E2E_SOURCE/tests/e2e/lib_sim.sh"
golden=$E2E_SOURCE/tests/e2e/sim_golden_figures.json
export MPLCONFIGDIR=$work/matplotlib

# figures OUT ARGUMENTS...: on the committed traces; what it prints goes to OUT.txt, its errors to OUT.err.
figures() {
  local out=$1
  shift
  "$bcisim" figures --traces "$E2E_SOURCE/sim/traces" --out "$out" "$@" > "$out.txt" 2> "$out.err" ||
    failed "figures $*: $(cat "$out.err")"
}

# So many that every trace has enough copies for the schemes to differ as they do on whole traces.
golden_size=(--instructions 1M --sensitivity-instructions 100K)
small_size=(--instructions 5K --sensitivity-instructions 2K --no-plots)

if [ "${1:-}" = --renew ]; then
  figures "$work/all" "${golden_size[@]}" --no-plots
  [ $failures = 0 ] || exit 1
  python3 - "$work/all/figures.json" "$golden" << 'EOF'
import json, sys
figures = json.load(open(sys.argv[1]))["figures"]
lines = []
for figure in figures:
    series = ",\n".join(
        f'   {json.dumps(one["name"])}: '
        + json.dumps([None if value is None else round(value, 3) for value in one["values"]])
        for one in figure["series"])
    lines.append(f' {json.dumps(figure["id"])}: {{\n  "categories": {json.dumps(figure["categories"])},\n'
                 f'  "series": {{\n{series}\n  }}\n }}')
open(sys.argv[2], "w").write("{\n" + ",\n".join(lines) + "\n}\n")
EOF
  echo "$golden"
  exit
fi

# ---- threads change nothing
figures "$work/one" "${small_size[@]}" --threads 1
figures "$work/two" "${small_size[@]}" --threads 2
diff -r "$work/one" "$work/two" || failed 'two threads give other data than one'
for out in one two; do
  [ ! -s "$work/$out.err" ] || failed "figures --no-plots says $(cat "$work/$out.err")"
done
# Few instructions may have nothing to do under a scheme: then there is no number, and no other.
cut -d, -f3- "$work"/one/*.csv | grep -qiE 'nan|inf' && failed 'figures of few instructions have what is no number'
[ -z "$(find "$work/one" -name '*.svg' -o -name '*.png')" ] || failed 'figures --no-plots plots'

# ---- plotting that fails: data are there, and it says so
mkdir "$work/bin"
printf '#!/bin/sh\n[ "$1" = -c ] && exit 0\nexit 1\n' > "$work/bin/python3"
chmod 755 "$work/bin/python3"
if PATH=$work/bin:$PATH "$bcisim" figures --traces "$E2E_SOURCE/sim/traces" --out "$work/unplotted" --instructions 1K \
  > /dev/null 2> "$work/unplotted.err"; then failed 'plotting failed, figures did not'; fi
grep -q "^bcisim: plotting failed, .*; the figures' data are in $work/unplotted$" "$work/unplotted.err" ||
  failed "when plotting failed it says $(cat "$work/unplotted.err")"
[ -s "$work/unplotted/figure-2.csv" ] || failed 'when plotting failed the data are not there'

if [ -n "${E2E_SANITIZE:-}" ]; then
  echo 'left out: golden data and plots, which are too slow with sanitizers'
  [ $failures = 0 ] && echo 'all else passed'
  exit $((failures != 0))
fi

# ---- golden data, properties, files
figures "$work/all" "${golden_size[@]}"
python3 - "$golden" "$work/all" << 'EOF' || failed 'the figures are not as they must be'
import json, pathlib, sys
folder = pathlib.Path(sys.argv[2])
golden = json.load(open(sys.argv[1]))
document = json.loads((folder / "figures.json").read_text())
wrong = []


def check(holds, what):
    if not holds:
        wrong.append(what)


def rounded(values):
    return [None if value is None else round(value, 3) for value in values]


figures = {figure["id"]: figure for figure in document["figures"]}
values = {key: {one["name"]: one["values"] for one in figure["series"]} for key, figure in figures.items()}
workloads = ["apache-receiver", "apache-sender", "iperf-receiver", "iperf-sender", "fio"]

# The numbers.
check(list(figures) == list(golden), f"figures {list(figures)}, golden {list(golden)}")
for key in figures.keys() & golden.keys():
    check(figures[key]["categories"] == golden[key]["categories"], f"figure {key}: categories {figures[key]['categories']}")
    check(list(values[key]) == list(golden[key]["series"]), f"figure {key}: series {list(values[key])}")
    for name in values[key].keys() & golden[key]["series"].keys():
        found, expected = rounded(values[key][name]), golden[key]["series"][name]
        check(found == expected, f"figure {key}, {name}: {found}, golden {expected}")

# What holds of every workload. Copies that overlap differently may cost a cycle here and there.
check([trace["workload"] for trace in document["traces"]] == workloads, f"workloads {document['traces']}")
tolerance = 0.05
for key, names in (("2", ("perfect cache", "perfect pipeline", "perfect granularity")),
                   ("9", ("FastBCI+CAF", "FastBCI", "0-DMA", "CopyEng"))):
    check(figures[key]["categories"] == workloads + ["average"], f"figure {key} is of {figures[key]['categories']}")
    for at, workload in enumerate(figures[key]["categories"]):
        gains = [values[key][name][at] for name in names] + [0]
        check(all(a >= b - tolerance for a, b in zip(gains, gains[1:])), f"{workload}: {names} gain {gains}")
for name, best in zip(zip(*values["10a"].values()), values["9"]["FastBCI+CAF"]):
    check(max(name) <= best + 1e-9, f"affinities gain {name}, the best of them {best}")
for at, workload in enumerate(workloads):
    shares = [one[at] for one in values["4"].values()]
    check(abs(sum(shares) - 100) < 1e-6 and min(shares) > -tolerance, f"{workload}: shares of cycles are {shares}")
check(values["10a"]["C_C"] == values["9"]["FastBCI"], "C_C is not what FastBCI is measured with")
misses = {name: dict(zip(figures["10b"]["categories"], one)) for name, one in values["10b"].items()}
for workload in workloads:
    total = sum(one[f"{workload} NEU_NEU"] for one in misses.values())
    check(abs(total - 100) < 1e-6, f"{workload}: NEU_NEU has {total} % of its own misses")
paper = {one["name"]: one["paper"] for one in figures["9"]["series"]}
check(paper["FastBCI"] == [None] * 5 + [23.2], f"the paper's average is {paper['FastBCI']}")
check([one["paper"][1] for one in figures["10a"]["series"]] == [21, 14, 25, 22], "the paper's apache-sender is missing")

# The CSV files say the same.
csv = {path.name for path in folder.glob("*.csv")}
check(csv == {f"figure-{key}.csv" for key in figures}, f"there are {csv}")
for key, figure in figures.items():
    lines = ["category,series,value,paper"]
    for one in figure["series"]:
        for category, value, said in zip(figure["categories"], one["values"], one["paper"]):
            cells = ["" if number is None else f"{number:.3f}" for number in (value, said)]
            lines.append(f'"{category}","{one["name"]}",{cells[0]},{cells[1]}')
    check((folder / f"figure-{key}.csv").read_text() == "\n".join(lines) + "\n", f"figure-{key}.csv says something else")
    check(all(number is not None for one in values[key].values() for number in one), f"figure {key}: values are missing")

# Plots, where the first of bcisim's two Pythons with matplotlib made them.
drawn = [figure for figure in figures.values() if figure["drawing"] != "table"]
check(len(drawn) == len(figures) - 1, "one figure is a table")
said = (folder.parent / "all.err").read_text()
if "for want of matplotlib" in said:
    check(said == "bcisim: no plots, for want of matplotlib; install python3-matplotlib\n", f"it says {said}")
    check(not list(folder.glob("*.svg")) + list(folder.glob("*.png")), "plots without matplotlib")
    print("left out: plots (install python3-matplotlib)")
else:
    check(said == "", f"it says {said}")
    for figure in drawn:
        name = f"figure-{figure['id']}"
        png, svg = folder / f"{name}.png", folder / f"{name}.svg"
        for plot in (png, svg):
            check(plot.exists() and plot.stat().st_size > 5000, f"{plot.name} is missing or of a few bytes")
        if png.exists() and svg.exists():
            check(png.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and png.read_bytes()[-8:-4] == b"IEND", f"{png.name} is no PNG")
            text = svg.read_text()
            check(text.rstrip().endswith("</svg>"), f"{svg.name} is no SVG")
            # Matplotlib draws letters, and leaves the words as comments.
            for word in [figure["title"]] + [one["name"] for one in figure["series"]]:
                check(word in text, f"{svg.name} does not show '{word}'")
            if figure["id"] == "4":  # shares, most of which is the same in all
                check("axis begins at" in text, f"{svg.name} does not say that its axis is cut")
for what in wrong:
    print(what)
sys.exit(bool(wrong))
EOF
for word in 'Figure 2: Limit speedups' 'Figure 9: Speedups of schemes' '(paper 23.2)' '5 traces of '; do
  grep -qF "$word" "$work/all.txt" || failed "figures prints no '$word'"
done

[ $failures = 0 ] && echo 'all passed'
exit $((failures != 0))
