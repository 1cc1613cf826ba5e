"""Compiler options shared by several packages."""

# Numeric loops are compiled for AVX2 + FMA (every x86-64 server since 2013); the server refuses to
# start on an older processor. Contraction is off so that a * b + c rounds as written and a fused
# multiply-add is only where the source says so: results do not change with inlining decisions.
CPU_KERNEL_COPTS = [
    "-O3",
    "-march=x86-64-v3",
    "-ffp-contract=off",
    "-fopenmp",
]
