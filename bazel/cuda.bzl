"""CUDA sources as libraries, compiled by nvcc."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

CudaToolkitInfo = provider(fields = {"home": "folder of the toolkit, empty if there is none"})

def _cuda_toolkit_info_impl(ctx):
    return [CudaToolkitInfo(home = ctx.attr.home)]

cuda_toolkit_info = rule(
    implementation = _cuda_toolkit_info_impl,
    attrs = {"home": attr.string()},
)

# Targets that hold CUDA code exist in builds with --config=cuda only; others skip them.
CUDA_ONLY = select({
    "//bazel:cuda_on": [],
    "//conditions:default": ["//bazel:without_cuda"],
})

# Machine code for Hopper with its own instructions (wgmma, bulk copies: the "a" target), and PTX of
# the oldest architecture with bf16 products, which the driver compiles for every other one. IEEE
# arithmetic throughout: no fast-math.
_NVCC_OPTIONS = [
    "-std=c++17",
    "-O3",
    "-gencode=arch=compute_90a,code=sm_90a",
    "-gencode=arch=compute_80,code=compute_80",
    "-lineinfo",
    "--expt-relaxed-constexpr",
    "-Xcompiler=-fPIC,-Wall,-Wextra,-Wno-unused-parameter",
]

def _cuda_library_impl(ctx):
    home = ctx.attr._toolkit[CudaToolkitInfo].home
    if not home:
        fail(("%s needs the CUDA toolkit: there is no bin/nvcc in $CUDA_HOME or /usr/local/cuda. " +
              "Install it, or build without --config=cuda.") % ctx.label)
    dependencies = cc_common.merge_cc_infos(cc_infos = [d[CcInfo] for d in ctx.attr.deps])
    context = dependencies.compilation_context
    objects = []
    for source in ctx.files.srcs:
        if source.extension != "cu":
            continue
        object = ctx.actions.declare_file("%s/%s.o" % (ctx.label.name, source.basename))
        args = ctx.actions.args()
        args.add("-c")
        args.add_all(_NVCC_OPTIONS)
        args.add_all(ctx.attr.copts)
        args.add_all(["-I.", "-I" + ctx.bin_dir.path])
        args.add_all(context.quote_includes, before_each = "-I")
        args.add_all(context.includes, before_each = "-I")
        args.add_all(context.system_includes, before_each = "-isystem")
        args.add_all([source, "-o", object])
        ctx.actions.run(
            executable = home + "/bin/nvcc",
            arguments = [args],
            inputs = depset(ctx.files.srcs + ctx.files.hdrs, transitive = [context.headers]),
            outputs = [object],
            env = {"PATH": home + "/bin:/usr/bin:/bin"},
            mnemonic = "CudaCompile",
            progress_message = "Compiling %s" % source.short_path,
        )
        objects.append(object)

    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(ctx = ctx, cc_toolchain = toolchain)
    archive = ctx.actions.declare_file("lib%s.a" % ctx.label.name)
    ctx.actions.run(
        executable = toolchain.ar_executable,
        arguments = ["rcsD", archive.path] + [o.path for o in objects],
        inputs = depset(objects, transitive = [toolchain.all_files]),
        outputs = [archive],
        mnemonic = "CudaArchive",
    )
    library = cc_common.create_library_to_link(
        actions = ctx.actions,
        feature_configuration = features,
        cc_toolchain = toolchain,
        pic_static_library = archive,
    )
    linking = cc_common.create_linking_context(linker_inputs = depset([
        cc_common.create_linker_input(owner = ctx.label, libraries = depset([library])),
    ]))
    compilation = cc_common.create_compilation_context(headers = depset(ctx.files.hdrs))
    own = CcInfo(compilation_context = compilation, linking_context = linking)
    return [
        DefaultInfo(files = depset([archive])),
        cc_common.merge_cc_infos(
            direct_cc_infos = [own],
            cc_infos = [d[CcInfo] for d in ctx.attr.deps],
        ),
    ]

_cuda_library = rule(
    implementation = _cuda_library_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu", ".cuh", ".h"]),
        "hdrs": attr.label_list(allow_files = [".cuh", ".h"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "copts": attr.string_list(doc = "further options of nvcc"),
        "_toolkit": attr.label(default = Label("@cuda_toolkit//:toolkit")),
        "_cc_toolchain": attr.label(default = Label("@bazel_tools//tools/cpp:current_cc_toolchain")),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def cuda_library(name, **kwargs):
    """Kernels (.cu) and the plain C++ headers of the functions that launch them.

    Args:
      name: the target.
      **kwargs: srcs, hdrs, deps, copts, visibility, testonly.
    """
    _cuda_library(name = name, target_compatible_with = CUDA_ONLY, **kwargs)
