// In a file of its own, so that no compiler takes the function below for one that cannot be
// replaced.
#include "base/error.hpp"
#include "base/private.hpp"

namespace haul {

namespace {

// Holds the sentence alone and no Error, since static TLS is scarce in a library loaded by
// dlopen().
constinit thread_local char last_sentence[Error::sentence_bytes] = {};

}  // namespace

}  // namespace haul

extern "C" char* haul_private_last_error(void) {
  return haul::last_sentence;
}
