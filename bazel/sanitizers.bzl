"""Targets for builds with a sanitizer."""

# Targets that exist in builds with --config=tsan only; others skip them.
THREAD_SANITIZER_ONLY = select({
    "//bazel:thread_sanitizer_on": [],
    "//conditions:default": ["//bazel:without_thread_sanitizer"],
})
