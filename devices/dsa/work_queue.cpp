// What HAUL_ENGINE_DSA says of one queue: which it is, and what is to be done with it.
#include "devices/dsa/work_queue.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace haul::dsa {

bool open_work_queue(const char* text, WorkQueue& queue, const Sentence& sentence) {
  constexpr char folder[] = "/dev/dsa/";
  constexpr std::size_t folder_length = sizeof folder - 1;
  constexpr char verify[] = "verify";
  char words[1024];
  std::snprintf(words, sizeof words, "%s", text);
  char* rest = nullptr;
  const char* word = strtok_r(words, " ", &rest);
  const char* name = "";
  if (word != nullptr && std::strcmp(word, verify) != 0) {
    name = std::strncmp(word, folder, folder_length) == 0 ? word + folder_length : word;
    word = strtok_r(nullptr, " ", &rest);
  }
  const bool stands_in = std::strchr(name, '/') != nullptr;
  for (; word != nullptr; word = strtok_r(nullptr, " ", &rest)) {
    if (std::strcmp(word, verify) == 0) {
      queue.verifies = true;
    } else if (!stands_in || !describe_stand_in(word, queue)) {
      sentence.say("'%.40s' in HAUL_ENGINE_DSA says nothing; the word behind a queue is verify",
                   word);
      return false;
    }
  }
  return stands_in ? open_stand_in(name, queue, sentence) : find_work_queue(name, queue, sentence);
}

void close_work_queue(WorkQueue& queue) {
  close(queue.descriptor);
  queue.descriptor = -1;
}

}  // namespace haul::dsa
