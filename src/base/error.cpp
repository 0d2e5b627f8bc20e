#include "base/error.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "base/os/keep_errno.hpp"
#include "base/private.hpp"

namespace haul {

const char* describe(Code code) noexcept {
  switch (code) {
    case Code::ok: return "success";
    case Code::invalid: return "invalid argument";
    case Code::again: return "no room now, try again";
    case Code::fault: return "an address of the range is not accessible";
    case Code::no_memory: return "out of memory";
    case Code::stale: return "the ticket or handle is not a live one";
    case Code::permission: return "permission denied";
    case Code::peer_gone: return "the peer process is gone";
    case Code::not_supported: return "not supported here";
    case Code::timed_out: return "timed out";
    case Code::io: return "input/output failure";
    case Code::closed: return "already closed";
  }
  return "unknown code";
}

Error make_error(Code code, int sys_errno, const char* format, ...) noexcept {
  const KeepErrno keep;
  Error error;
  error.code = code;
  error.sys_errno = sys_errno;
  va_list arguments;
  va_start(arguments, format);
  if (vsnprintf(error.sentence, sizeof error.sentence, format, arguments) < 0) {
    snprintf(error.sentence, sizeof error.sentence, "%s", describe(code));
  }
  va_end(arguments);
  return error;
}

const char* describe_errno(int sys_errno) noexcept {
  // Unlike strerror() it neither translates nor allocates.
  const char* text = strerrordesc_np(sys_errno);
  return text != nullptr ? text : "unknown error";
}

void set_last_error(const Error& error) noexcept {
  char* const sentence = haul_private_last_error();
  memcpy(sentence, error.sentence, Error::sentence_bytes);
  sentence[Error::sentence_bytes - 1] = '\0';
}

const char* last_error_sentence() noexcept {
  return haul_private_last_error();
}

}  // namespace haul
