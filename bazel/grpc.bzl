"""protoc and the gRPC C++ plugin of the distribution as one rule."""

def cc_grpc_library(name, proto, deps = [], **kwargs):
    """A C++ library of the messages and services of one .proto file.

    Args:
      name: the target.
      proto: the .proto file of this package.
      deps: other cc_grpc_library targets whose protos are imported.
      **kwargs: passed to cc_library.
    """
    base = proto[:-len(".proto")]
    native.filegroup(name = name + "_proto", srcs = [proto] + [d + "_proto" for d in deps], visibility = ["//visibility:public"])
    native.genrule(
        name = name + "_gen",
        srcs = [name + "_proto"],
        outs = [base + ".pb.h", base + ".pb.cc", base + ".grpc.pb.h", base + ".grpc.pb.cc"],
        cmd = ("/usr/bin/protoc -I. --cpp_out=$(GENDIR) --grpc_out=$(GENDIR) " +
               "--plugin=protoc-gen-grpc=/usr/bin/grpc_cpp_plugin %s/%s" % (native.package_name(), proto)),
    )
    native.cc_library(
        name = name,
        srcs = [base + ".pb.cc", base + ".grpc.pb.cc"],
        hdrs = [base + ".pb.h", base + ".grpc.pb.h"],
        deps = deps + ["@system//:grpc"],
        **kwargs
    )
