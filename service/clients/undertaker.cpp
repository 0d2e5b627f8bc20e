// A thread that unmaps, made on first use.
#include "service/clients/undertaker.hpp"

#include "base/os/os.hpp"

namespace haul::service {

Undertaker::~Undertaker() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  called_.notify_one();
  if (running_) os::join_thread(thread_);
}

void Undertaker::unmap(void* at, std::size_t bytes) {
  if (at == nullptr) return;
  if (!running_) running_ = os::start_thread(&thread_, body, this) == 0;
  if (!running_) {
    os::unmap(at, bytes);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    graves_.push_back(Grave{at, bytes});
  }
  called_.notify_one();
}

void* Undertaker::body(void* self) {
  os::name_thread("haul-unmap");
  static_cast<Undertaker*>(self)->work();
  return nullptr;
}

void Undertaker::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    called_.wait(lock, [this] { return stopping_ || !graves_.empty(); });
    if (graves_.empty()) return;
    const Grave grave = graves_.front();
    graves_.pop_front();
    lock.unlock();
    os::unmap(grave.at, grave.bytes);
    lock.lock();
  }
}

}  // namespace haul::service
