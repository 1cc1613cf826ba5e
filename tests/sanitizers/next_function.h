#ifndef LTX_TESTS_SANITIZERS_NEXT_FUNCTION_H_
#define LTX_TESTS_SANITIZERS_NEXT_FUNCTION_H_

#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace ltx::testing {

template <typename Signature>
class NextFunction;

/// The function of a shared library that a function of the same name in the program hides: the
/// dynamic linker binds all callers, those in other shared libraries too, to the program's.
template <typename Result, typename... Arguments>
class NextFunction<Result(Arguments...)> {
 public:
  /// `symbol` as the library spells it, mangled.
  constexpr explicit NextFunction(const char* symbol) : symbol_(symbol) {}

  /// Ends the program if no library has the symbol: its locks would do nothing.
  Result operator()(Arguments... arguments) {
    // Looked up at the first call: initializers of libraries that run before this program's own
    // call these functions too.
    Result (*function)(Arguments...) = function_.load(std::memory_order_relaxed);
    if (function == nullptr) {
      function = reinterpret_cast<Result (*)(Arguments...)>(dlsym(RTLD_NEXT, symbol_));
      if (function == nullptr) {
        std::fprintf(stderr, "no shared library has %s: %s\n", symbol_, dlerror());
        std::abort();
      }
      function_.store(function, std::memory_order_relaxed);
    }
    return function(arguments...);
  }

 private:
  const char* const symbol_;
  std::atomic<Result (*)(Arguments...)> function_{nullptr};
};

}  // namespace ltx::testing

#endif  // LTX_TESTS_SANITIZERS_NEXT_FUNCTION_H_
