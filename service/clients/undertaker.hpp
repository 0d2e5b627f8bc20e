// Unmaps in the background: undoing the mappings of a client that has left may take many
// milliseconds, for which the others should not wait.
#pragma once

#include <pthread.h>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>

namespace haul::service {

class Undertaker {
 public:
  Undertaker() = default;
  ~Undertaker();
  Undertaker(const Undertaker&) = delete;
  Undertaker& operator=(const Undertaker&) = delete;

  // Unmaps [at, at + bytes) at some later time, or at once if no thread can be made. Nobody may
  // touch it any more.
  void unmap(void* at, std::size_t bytes);

 private:
  struct Grave {
    void* at;
    std::size_t bytes;
  };
  static void* body(void* self);
  void work();

  std::mutex mutex_;
  std::condition_variable called_;
  std::deque<Grave> graves_;
  bool stopping_ = false;
  bool running_ = false;
  pthread_t thread_{};
};

}  // namespace haul::service
