// A file behind which a program stands for a device. It is opened only where nothing can be lost by
// writing to it: memory of one page, or a pipe.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "devices/dsa/portal.hpp"
#include "devices/dsa/work_queue.hpp"

namespace haul::dsa {
namespace {

// NAME=NUMBER of that name?
bool number_of(const char* word, const char* name, std::size_t* number) {
  const std::size_t length = std::strlen(name);
  if (std::strncmp(word, name, length) != 0 || word[length] != '=') return false;
  char* end = nullptr;
  *number = std::strtoull(word + length + 1, &end, 10);
  return *end == '\0' && *number != 0;
}

// (Files in memory, and no others, tell of their seals.)
bool is_harmless(int descriptor) {
  struct stat facts {};
  if (fstat(descriptor, &facts) != 0) return false;
  return S_ISFIFO(facts.st_mode) ||
         (S_ISREG(facts.st_mode) && static_cast<std::size_t>(facts.st_size) == portal_bytes &&
          fcntl(descriptor, F_GET_SEALS) >= 0);
}

}  // namespace

bool describe_stand_in(const char* word, WorkQueue& queue) {
  std::size_t number = 0;
  if (number_of(word, "depth", &number)) {
    queue.depth = static_cast<unsigned>(number);
  } else if (number_of(word, "batch", &number)) {
    queue.most_batch = static_cast<unsigned>(number);
  } else if (number_of(word, "transfer", &number)) {
    queue.most_transfer = number;
  } else if (std::strcmp(word, "shared") == 0) {
    queue.shared = true;
  } else if (std::strcmp(word, "block_on_fault") == 0) {
    queue.blocks_on_fault = true;
  } else {
    return false;
  }
  return true;
}

bool open_stand_in(const char* path, WorkQueue& queue, const Sentence& sentence) {
  // (A pipe is opened for reading too: without a reader, a write would raise SIGPIPE.)
  queue.descriptor = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (queue.descriptor < 0) {
    sentence.say("%.80s cannot be opened (%s); name a work queue in HAUL_ENGINE_DSA, such as wq0.0",
                 path, strerrordesc_np(errno));
    return false;
  }
  if (!is_harmless(queue.descriptor)) {
    close(queue.descriptor);
    sentence.say("%.60s stands for no device; name a work queue in HAUL_ENGINE_DSA, such as wq0.0",
                 path);
    return false;
  }
  std::snprintf(queue.name, sizeof queue.name, "%s", path);
  queue.emulated = true;
  return true;
}

}  // namespace haul::dsa
