#!/bin/bash
# What bcisim says: documents on standard output, advice in the words of haul, and names of untrusted files, which a
# terminal must not obey and a table must not take for its own.
set -u
. "$(dirname "$0")/lib_sim.sh"
piece=$work/piece.trace
expect 0 "$piece: " cut "$fio" -o "$piece" --skip 300K --keep 20K

# ---- --json -: the document and nothing else
printf 'BCISIMRAW\1\0\0\0\5\0\0\0\0\0\0\0\0' > "$work/stream"  # of no instructions
for arguments in "run $piece --scheme fast-bci" "advise $piece --sites 2" "convert $work/stream -o $work/none.trace"; do
  # shellcheck disable=SC2086
  expect 0 '' $arguments --json -
  python3 -c 'import json, sys; sys.exit(not json.load(sys.stdin))' < "$work/out" ||
    failed "bcisim $arguments --json - prints $(cat "$work/out")"
  [ ! -s "$work/err" ] || failed "bcisim $arguments --json - says $(cat "$work/err")"
  cp "$work/out" "$work/printed.json"
  # shellcheck disable=SC2086
  expect 0 '' $arguments --json "$work/document.json"
  [ -s "$work/out" ] || failed "bcisim $arguments --json FILE prints nothing"
  cmp "$work/document.json" "$work/printed.json" || failed "bcisim $arguments --json: a file and - differ"
done
[ ! -e ./- ] || failed '--json - makes a file'

# ---- pipes: most commands read a trace more than once
mkfifo "$work/pipe"
for command in info run compare advise; do
  expect 1 "$work/pipe: cannot be read (it is a pipe or a device, and a trace is read more than once); write it to a file" \
    $command "$work/pipe"
done

# ---- metadata: what is of a wrong type, and what a terminal or a table would obey
mkdir "$work/told" "$work/odd"
python3 - "$piece" "$work/told" "$work/odd/odd.trace" << 'EOF'
import json, pathlib, struct, sys, zlib
whole, folder = pathlib.Path(sys.argv[1]).read_bytes(), pathlib.Path(sys.argv[2])
length = struct.unpack_from("<I", whole, 60)[0]
metadata = json.loads(whole[64 : 64 + length])


def told(new):
    text = json.dumps(new, ensure_ascii=False).encode()
    head = whole[:60] + struct.pack("<I", len(text)) + text
    return head + struct.pack("<I", zlib.crc32(head)) + whole[68 + length :]


damaged = "offset 64: the file is damaged, "
for number, (new, says) in enumerate((
    ([], damaged + "its metadata are no JSON object; "),
    (5, damaged + "its metadata are no JSON object; "),
    ({"workload": []}, damaged + "its metadata name the workload or role by no text; "),
    ({"role": 7}, damaged + "its metadata name the workload or role by no text; "),
    ({"symbols": 5}, damaged + "its symbols are no JSON object; "),
    ({"symbols": ["a"]}, damaged + "its symbols are no JSON object; "),
    ({"symbols": {"0x1": 5}}, damaged + "its symbols have a name that is no text; "),
    ({}, "instructions: 20"),
    ({"kernel": [1], "cut": "none", "symbols": {"": "x"}, "other": None}, "cut: none"),
)):
    (folder / str(number)).write_bytes(told(new))
    (folder / f"{number}.says").write_text(says)
metadata["workload"] = 'a,"b"\n$x^$\x1b]0;title\x07\u009b2J'
metadata["kernel"] = "6\x1b[31m"
metadata["cut"] = {"\x7f\u202e": "\x1b[2J\u009b"}
metadata["symbols"] = {site: name + "\x1b[31m\n" for site, name in metadata["symbols"].items()}
pathlib.Path(sys.argv[3]).write_bytes(told(metadata))
EOF
for says in "$work"/told/*.says; do
  text=$(cat "$says")
  case $text in
    offset*)
      for command in info run advise cut; do
        arguments=
        [ $command != cut ] || arguments="-o $work/new --keep 1"
        # shellcheck disable=SC2086
        expect 1 "$text" $command "${says%.says}" $arguments
      done ;;
    *)
      expect 0 "$text" info "${says%.says}"
      expect 0 'advice: ' advise "${says%.says}" --sites 1 ;;
  esac
done
# harmless ARGUMENTS...: what it says holds no character that a terminal obeys, and shows what it was.
harmless() {
  timeout 120 "$bcisim" "$@" > "$work/out" 2> "$work/err" < /dev/null
  cat "$work/out" "$work/err" > "$work/both"
  if LC_ALL=C grep -qP '[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80\xae' "$work/both"; then
    failed "bcisim $1 shows raw: $(LC_ALL=C cat -v "$work/both")"
  fi
  grep -qE '\\x1b|\\u001b' "$work/both" || failed "bcisim $1 does not show the escape: $(cat "$work/both")"
}
odd=$work/odd/odd.trace
harmless info "$odd"
grep -qF 'workload: a,"b"\x0a$x^$\x1b]0;title\x07\xc2\x9b2J' "$work/out" || failed "info shows $(head -n 1 "$work/out")"
harmless advise "$odd" --sites 3 --instructions 5K
harmless advise "$odd" --sites 3 --instructions 5K --json -
harmless run "$piece" --scheme $'\033[31m'
harmless run "$piece" $'--\033[31m'
harmless cut "$piece" -o "$work/"$'\033[31m.trace' --keep 5
for name in missing whole; do
  trace=$work/$name$'\033[31m'.trace
  [ $name = missing ] || cp "$piece" "$trace"
  for command in run compare; do harmless $command "$trace" "$piece" --instructions 1K; done
done

# ---- figures of a workload of such a name: tables, CSV (RFC 4180), plots
export MPLCONFIGDIR=$work/matplotlib
harmless figures --traces "$work/odd" --out "$work/figures" --instructions 2K
[ ! -s "$work/err" ] || grep -q 'for want of matplotlib' "$work/err" || failed "figures of an odd name says $(cat "$work/err")"
python3 - "$work/figures" << 'EOF' || failed 'not true of the CSV files of a workload of an odd name'
import csv, json, pathlib, sys
folder = pathlib.Path(sys.argv[1])
categories = set()
for figure in json.loads((folder / "figures.json").read_text())["figures"]:
    with open(folder / f"figure-{figure['id']}.csv", newline="") as file:
        rows = list(csv.reader(file, strict=True))
    expected = [[category, one["name"]] for one in figure["series"] for category in figure["categories"]]
    assert [row[:2] for row in rows[1:]] == expected and all(len(row) == 4 for row in rows), figure["id"]
    categories |= {row[0] for row in rows}
assert any(category.startswith('a,"b"\n$x^$\x1b') for category in categories), categories
EOF

# ---- advise: places, their pairs of affinities ranked, haul's names; the document says the same
expect 0 'dst_affinity = HAUL_' advise "$E2E_SOURCE/sim/traces/apache-sender.trace" --sites 6 --instructions 100K \
  --json "$work/advice.json"
grep -q 'advice: none; haul ignores affinities below 256 bytes' "$work/out" ||
  failed "advise of short copies prints: $(cat "$work/out")"
python3 - "$work/out" "$work/advice.json" << 'EOF' || failed "advise prints: $(cat "$work/out")"
import itertools, json, re, sys
text = open(sys.argv[1]).read()
places = [place + "\n" for place in text.split("\n\n") if place.strip()]
short = {"C": "HAUL_CACHEABLE", "NEU": "HAUL_NEUTRAL", "NC": "HAUL_NON_CACHEABLE"}
document = json.load(open(sys.argv[2]))
assert len(places) == len(document) == 6, places
for place, told in zip(places, document):
    head = re.match(r"(\S+) \(([^,]+), ([1-9]\d*) copies of (\d+) bytes\)\n", place)
    assert head.groups() == (told["place"], told["kind"], str(told["copies"]), str(told["bytes_each"])), place
    rows = re.findall(r"^ +(\d+) +(-|C|NEU|NC) +(C|NEU|NC) +(\d+\.\d\d)$", place, re.M)
    assert [int(row[0]) for row in rows] == list(range(1, len(rows) + 1)), place
    pairs = {row[1:3] for row in rows}
    assert pairs == set(itertools.product(short, short)) or pairs == {("-", one) for one in short}, place
    gains = [float(row[3]) for row in rows]
    assert gains == sorted(gains, reverse=True) and gains[-1] == 0, place
    ranked = [(row.get("src_affinity"), row["dst_affinity"]) for row in told["ranking"]]
    assert ranked == [(short.get(row[1]), short[row[2]]) for row in rows], place
    assert [f"{row['gain_percent']:.2f}" for row in told["ranking"]] == [row[3] for row in rows], place
    advice = re.search(r"^  advice: (.*)$", place, re.M)[1]
    assert told["ignored_by_haul"] == (told["bytes_each"] < 256) == (told["advice"] is None), place
    if told["advice"] is None:
        assert advice == "none; haul ignores affinities below 256 bytes", place
        continue
    pair = (told["advice"].get("src_affinity"), told["advice"]["dst_affinity"])
    words = ", ".join(f"{side}_affinity = {one}" for side, one in zip(("src", "dst"), pair) if one)
    default = " (haul's default)" if set(pair) <= {None, "HAUL_CACHEABLE"} else ""
    assert advice == words + default, place
    # It is within three thousandths of the fastest; haul's default, where that is, too.
    cycles = {key: row["cycles"] for key, row in zip(ranked, told["ranking"])}
    equal = [key for key in ranked if cycles[key] <= 1.003 * cycles[ranked[0]]]
    assert pair in equal, place
    assert default or (pair[0] and "HAUL_CACHEABLE", "HAUL_CACHEABLE") not in equal, place
EOF

[ $failures = 0 ] && echo 'all passed'
exit $((failures != 0))
