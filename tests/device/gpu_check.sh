#!/usr/bin/env bash
# Builds what a GPU runs and checks it on this machine: kernels against references, their times, steps, NCCL. Needs
# bash, cmake, ninja, nvcc and g++ and no package of ours, no MPI and no network; ends within LIMIT seconds.
#
#   tests/device/gpu_check.sh [--out DIR] [--skip SECTION,...] [--build DIR]
#
# Sections: steps, communication, times, kernels. The table of times is DIR/calibration.tsv; DIR is $OUT, or the build's
# folder. LIMIT (seconds, default 360) counts the build. ARCH is the architecture, such as 90; by default the one of the
# first GPU. A short summary comes last. Exits 0 when nothing failed, 1 when a check did, 5 when the machine lacks what is
# needed.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."

out=${OUT:-}
build=build/device
skip=()
while (($# > 0)); do
  case $1 in
    --out) out=$2 ;;
    --build) build=$2 ;;
    --skip) skip=(--skip "$2") ;;
    *)
      echo "gpu_check: unknown option $1 (--out, --skip, --build)" >&2
      exit 2
      ;;
  esac
  shift 2
done

PATH=$PATH:/usr/local/cuda/bin
for tool in cmake ninja nvcc g++; do
  command -v "$tool" >/dev/null || { echo "gpu_check: $tool is not here" >&2; exit 5; }
done

# "9.0" of the first GPU becomes 90.
arch=${ARCH:-$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d '. ')} || arch=
if [[ -z $arch ]]; then
  echo "gpu_check: no GPU is seen (nvidia-smi); ARCH=90 builds for one all the same" >&2
  arch=90
fi

echo "=== build for sm_$arch in $build"
mkdir -p "$build"
if ! cmake --preset device -B "$build" -DCMAKE_CUDA_ARCHITECTURES="$arch" >"$build/configure.log" 2>&1; then
  cat "$build/configure.log"
  exit 5
fi
ninja -C "$build" gpu_check >"$build/build.log" 2>&1 || { tail -n 40 "$build/build.log"; exit 1; }
echo "=== build: $SECONDS s"

budget=$((${LIMIT:-360} - SECONDS - 20))
if ((budget < 10)); then
  echo "gpu_check: the build has left no time; run it again, it is built now" >&2
  exit 1
fi
status=0
timeout --kill-after=5 $((budget + 15)) "$build/tests/device/gpu_check" --programs tests/device/programs \
  --out "${out:-$build}" --budget "$budget" "${skip[@]}" || status=$?
if ((status == 124 || status == 137)); then echo "FAIL  gpu_check hung: $budget s and 15 more were over"; fi
echo "=== all: $SECONDS s"
exit "$status"
