#!/usr/bin/env python3
"""Prints compile_commands.json for clang-tidy and editors, from `bazel aquery`."""

import json
import os
import subprocess
import sys


def main():
    # The sources of the CUDA device are there in builds with it only.
    toolkit = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    config = ["--config=cuda"] if os.path.exists(toolkit + "/bin/nvcc") else []
    query = subprocess.run(
        ["bazel", "aquery", *config, "--output=jsonproto", 'mnemonic("CppCompile", //...)'],
        capture_output=True, text=True)
    if query.returncode != 0:
        sys.stderr.write(query.stderr)
        return 1
    # Generated headers are reached through the bazel-out link of the workspace.
    root = os.getcwd()
    commands = []
    for action in json.loads(query.stdout).get("actions", []):
        arguments = action["arguments"]
        source = arguments[arguments.index("-c") + 1]
        if source.startswith(("external/", "bazel-out/")):
            continue
        # Options of gcc that clang does not know.
        arguments = [a for a in arguments
                     if a not in ("-fno-canonical-system-headers", "-Wno-free-nonheap-object")]
        commands.append({"directory": root, "file": source, "arguments": arguments})
    json.dump(commands, sys.stdout, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
