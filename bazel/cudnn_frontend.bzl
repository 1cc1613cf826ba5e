"""The headers of cuDNN's C++ front end that tools/install_packages.sh installs, if they are there."""

_BUILD = """
cc_library(
    name = "headers",
    hdrs = glob(["include/**"], allow_empty = True),
    includes = ["include"],
    visibility = ["//visibility:public"],
)
"""

def _cudnn_frontend_impl(rctx):
    include = rctx.path(rctx.attr.path).get_child("include")
    if include.exists:
        rctx.symlink(include, "include")
    rctx.file("BUILD.bazel", _BUILD)

cudnn_frontend = repository_rule(
    doc = "Empty where the headers are missing; the one file that includes them says so.",
    implementation = _cudnn_frontend_impl,
    attrs = {"path": attr.string(mandatory = True, doc = "folder that holds include/")},
    local = True,
)
