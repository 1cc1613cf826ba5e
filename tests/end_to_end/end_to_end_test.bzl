"""Tests that start the server program."""

def end_to_end_test(
        name,
        srcs = None,
        size = "medium",
        gtest = "@system//:gtest_main",
        deps = [],
        **kwargs):
    """A test with this package's whole harness.

    Args:
      name: the target; its source is NAME.cc unless `srcs` says otherwise.
      srcs: sources.
      size: as of cc_test.
      gtest: the test library, for tests with flags and a main() of their own the one without.
      deps: what the test needs besides the harness.
      **kwargs: all else of cc_test.
    """
    native.cc_test(
        name = name,
        size = size,
        srcs = srcs or [name + ".cc"],
        deps = [
            ":background_job",
            ":limit",
            ":server_process",
            ":subprocess",
            ":wire_calls",
            gtest,
        ] + deps,
        **kwargs
    )
