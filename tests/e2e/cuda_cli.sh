#!/usr/bin/env bash
# What the command says of the engine cuda: without a driver, with one that is too old or finds no GPU, and with a model
# of one; and that the benchmark runs on the model.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/e2e/lib_cli.sh
. "$here/lib_cli.sh"
[ -f "$E2E_BUILD/lib/libhaul-cuda.so" ] || { echo "haul was built without the engine cuda"; exit 77; }

model=$E2E_PROGRAMS/cuda_model/libcuda.so.1
old=$E2E_PROGRAMS/cuda_model_old/libcuda.so.1

# says WORDS [VARIABLE=VALUE...]: `haul info` and its JSON have these words of the engine, in one sentence.
says() {
  local words=$1
  shift
  env "$@" "$haul" info --json > "$work/info.json"
  python3 - "$work/info.json" "$words" << 'EOF' || failed "haul info does not say \"$words\" of the engine cuda"
import json, sys
engine = next(e for e in json.load(open(sys.argv[1]))["engines"] if e["name"] == "cuda")
sys.exit(0 if sys.argv[2] in engine["status"] else engine["status"])
EOF
}

says "is not here; install NVIDIA's driver" HAUL_ENGINE_CUDA=library=/nonexistent/libcuda.so.1
says "lacks the function" "HAUL_ENGINE_CUDA=library=$old"
says "CUDA_ERROR_NO_DEVICE" "HAUL_ENGINE_CUDA=library=$model" CUDA_MODEL_DEVICES=0
says "2 GPUs, no hardware, none opened yet" "HAUL_ENGINE_CUDA=library=$model" CUDA_MODEL_DEVICES=2
# Found where the loader looks, as a real one is.
says "1 GPU, no hardware" "LD_LIBRARY_PATH=$(dirname "$model"):${LD_LIBRARY_PATH:-}" HAUL_ENGINE_CUDA=slots=4

status=0
HAUL_ENGINE_CUDA=library=/nonexistent/libcuda.so.1 "$haul" bench cuda --quick > "$work/out" 2>&1 || status=$?
[ "$status" = 1 ] || failed "haul bench cuda without a driver ends with $status: $(cat "$work/out")"
grep -q "is not here; install NVIDIA's driver" "$work/out" || failed "haul bench cuda says: $(cat "$work/out")"

HAUL_ENGINE_CUDA="library=$model" timeout 120 "$haul" bench cuda --quick --sizes 64K --json "$work/rows.json" > "$work/out" 2>&1 ||
  failed "haul bench cuda on the model: $(tail -n 1 "$work/out")"
python3 - "$work/rows.json" << 'EOF' || failed "haul bench cuda has other rows"
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
kinds = {(r["direction"], r["by"], r["memory"]) for r in rows}
assert len(rows) == len(kinds) == 12, kinds
assert all(r["gbps"] > 0 and r["copy_ns"] > 0 and r["caller_cpu"] >= 0 for r in rows)
EOF

[ "$failures" = 0 ]
