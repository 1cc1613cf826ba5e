#!/usr/bin/env bash
# Formatting (clang-format) and static checks (clang-tidy) of the C++ sources.
# usage: tools/lint.sh [--format-only] [FILE.cc ...]
set -uo pipefail
cd "$(dirname "$0")/.."

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
command -v clang-format > /dev/null && command -v clang-tidy > /dev/null ||
  { as_root apt-get update -q && as_root apt-get install -y -q --no-install-recommends clang-format clang-tidy; } ||
  exit 1

format_only=no
if [ "${1:-}" = --format-only ]; then format_only=yes; shift; fi

mapfile -t all < <(git ls-files '*.cc' '*.h' '*.cu' '*.cuh')
clang-format --dry-run -Werror "${all[@]}" || exit 1
[ "$format_only" = yes ] && exit 0

# Without a CUDA toolkit nothing can be said about the sources that include its headers.
cuda=()
[ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ] || cuda=(':!kernels/cuda' ':!tests/cuda')
if [ $# -gt 0 ]; then files=("$@"); else mapfile -t files < <(git ls-files '*.cc' "${cuda[@]}"); fi
python3 tools/compile_commands.py > compile_commands.json || exit 1
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 4 clang-tidy --quiet -p . 2> /dev/null
