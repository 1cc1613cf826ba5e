"""Libraries of the Linux distribution as `cc_library` targets of one external repository."""

def _pkg_config(rctx, packages, flag):
    result = rctx.execute(["pkg-config", flag] + packages.split(" "))
    if result.return_code:
        fail("pkg-config cannot find %s (run tools/install_packages.sh): %s" % (packages, result.stderr))
    return [word for word in result.stdout.strip().split(" ") if word]

def _system_libraries_impl(rctx):
    lines = ["package(default_visibility = [\"//visibility:public\"])"]
    for name, packages in rctx.attr.modules.items():
        link = _pkg_config(rctx, packages, "--libs")
        other = _pkg_config(rctx, packages, "--cflags-only-other")
        defines = [word[2:] for word in other if word.startswith("-D")]
        lines.append("cc_library(name = %r, linkopts = %r, defines = %r)" % (name, link, defines))
    for name, link in rctx.attr.plain.items():
        lines.append("cc_library(name = %r, linkopts = %r)" % (name, [link]))
    rctx.file("BUILD.bazel", "\n".join(lines) + "\n")

system_libraries = repository_rule(
    implementation = _system_libraries_impl,
    attrs = {
        "modules": attr.string_dict(doc = "target name -> space-separated pkg-config modules"),
        "plain": attr.string_dict(doc = "target name -> one linker flag"),
    },
    local = True,
)
