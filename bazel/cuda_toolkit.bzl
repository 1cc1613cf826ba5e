"""The CUDA toolkit of this machine as one external repository, if there is one."""

_INFO = """
load("@ltx_server//bazel:cuda.bzl", "cuda_toolkit_info")

package(default_visibility = ["//visibility:public"])

cuda_toolkit_info(name = "toolkit", home = %r)
"""

# Host compilations see the headers of the runtime, cuBLASLt and cuDNN only: a glob over all of
# CCCL would put thousands of files into every sandbox.
_HEADERS = """
cc_library(
    name = "headers",
    hdrs = glob(["include/*.h", "include/*.hpp", "include/crt/**", "include/cccl/nv/**"]),
    includes = ["include", "include/cccl"],
    visibility = ["//visibility:private"],
)
"""

_LIBRARY = """
cc_library(name = %r, linkopts = %r, deps = %r)
"""

def _cuda_toolkit_impl(rctx):
    home = rctx.os.environ.get("CUDA_HOME", "/usr/local/cuda")
    found = rctx.path(home + "/bin/nvcc").exists
    lib = home + "/lib64"
    link = ["-L" + lib, "-Wl,-rpath," + lib]
    static_runtime = rctx.path(lib + "/libcudart_static.a").exists
    libraries = {
        # The static runtime loads the driver on first use, so that a program starts without one.
        "cudart": ["-lcudart_static", "-ldl", "-lrt", "-pthread"] if static_runtime else ["-lcudart"],
        "cublas_lt": ["-lcublasLt"],
        "cudnn": ["-lcudnn", "-lnvrtc"],
    }
    text = _INFO % (home if found else "")
    if found:
        rctx.symlink(home + "/include", "include")
        text += _HEADERS
    for name, flags in libraries.items():
        if found:
            text += _LIBRARY % (name, link + flags, [":headers"])
        else:
            text += _LIBRARY % (name, [], [])
    rctx.file("BUILD.bazel", text)

cuda_toolkit = repository_rule(
    doc = """Finds the toolkit in $CUDA_HOME or /usr/local/cuda.

    Without one the repository holds empty libraries, and cuda_library says what is missing when a
    build with --config=cuda asks for it.""",
    implementation = _cuda_toolkit_impl,
    environ = ["CUDA_HOME"],
    local = True,
)
