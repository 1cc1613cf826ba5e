#!/usr/bin/env bash
# Installs everything that building and testing ltx-server needs on Debian 12. Run as root, or with
# sudo at hand. Does nothing that is done already.
set -euo pipefail

PACKAGES=(
  bazel-bootstrap g++ git pkg-config            # build
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libabsl-dev
  libdnnl-dev                                   # matrix products and convolutions on the CPU
  libavformat-dev libavcodec-dev libavutil-dev libswscale-dev libswresample-dev
  libcli11-dev libkissfft-dev libspdlog-dev nlohmann-json3-dev libssl-dev libutf8proc-dev zlib1g-dev
  libcpp-httplib-dev liblcms2-dev prometheus-cpp-dev
  libgtest-dev libgmock-dev                     # tests
  ca-certificates python3 python3-pip unzip     # fetches the google.rpc protos
)
# The google.rpc messages (error details on the wire). Debian has no package of the .proto files;
# this wheel carries them.
PROTOS_VERSION=1.66.0
PROTOS_DIR=/usr/local/share/ltx-server/googleapis
# cuDNN's C++ headers (MIT), for builds with --config=cuda. Debian has no package of them and the
# CUDA toolkit does not carry them; this wheel does.
CUDNN_FRONTEND_VERSION=1.32.0
CUDNN_FRONTEND_DIR=/usr/local/share/ltx-server/cudnn_frontend

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

missing=()
for package in "${PACKAGES[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ||
    missing+=("$package")
done
if [ "${#missing[@]}" -gt 0 ]; then
  echo "Installing ${#missing[@]} packages: ${missing[*]}"
  as_root apt-get update -q
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

if [ ! -f "$PROTOS_DIR/google/rpc/error_details.proto" ]; then
  echo "Installing the google.rpc protos into $PROTOS_DIR"
  /usr/bin/python3 -m pip download -q --no-deps -d "$scratch" "googleapis-common-protos==$PROTOS_VERSION"
  as_root mkdir -p "$PROTOS_DIR"
  as_root unzip -q -o "$scratch"/googleapis_common_protos-*.whl 'google/rpc/*.proto' -d "$PROTOS_DIR"
fi

# Only machines that can build for a GPU need the second wheel.
if [ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ] &&
  [ ! -f "$CUDNN_FRONTEND_DIR/include/cudnn_frontend.h" ]; then
  echo "Installing cuDNN's C++ headers into $CUDNN_FRONTEND_DIR"
  /usr/bin/python3 -m pip download -q --no-deps -d "$scratch" "nvidia-cudnn-frontend==$CUDNN_FRONTEND_VERSION"
  as_root mkdir -p "$CUDNN_FRONTEND_DIR"
  as_root unzip -q -o "$scratch"/nvidia_cudnn_frontend-*.whl 'include/*' '*.dist-info/licenses/*' -d "$CUDNN_FRONTEND_DIR"
fi
