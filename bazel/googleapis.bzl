"""The google.rpc messages, generated from the .proto files that tools/install_packages.sh installs."""

_BUILD = """
genrule(
    name = "rpc_status_gen",
    srcs = ["google/rpc/status.proto", "google/rpc/error_details.proto"],
    outs = [
        "google/rpc/status.pb.h", "google/rpc/status.pb.cc",
        "google/rpc/error_details.pb.h", "google/rpc/error_details.pb.cc",
    ],
    cmd = "/usr/bin/protoc -I$$(dirname $(location google/rpc/status.proto))/../.. -I/usr/include " +
          "--cpp_out=$(RULEDIR) google/rpc/status.proto google/rpc/error_details.proto",
)

cc_library(
    name = "rpc_status",
    srcs = ["google/rpc/status.pb.cc", "google/rpc/error_details.pb.cc"],
    hdrs = ["google/rpc/status.pb.h", "google/rpc/error_details.pb.h"],
    includes = ["."],
    visibility = ["//visibility:public"],
    deps = ["@system//:grpc"],
)
"""

def _googleapis_impl(rctx):
    folder = rctx.path(rctx.attr.path)
    for name in ["status", "error_details"]:
        source = folder.get_child("google").get_child("rpc").get_child(name + ".proto")
        if not source.exists:
            fail("no %s: run tools/install_packages.sh" % source)
        rctx.symlink(source, "google/rpc/%s.proto" % name)
    rctx.file("BUILD.bazel", _BUILD)

googleapis = repository_rule(
    implementation = _googleapis_impl,
    attrs = {"path": attr.string(mandatory = True, doc = "folder that holds google/rpc/*.proto")},
    local = True,
)
