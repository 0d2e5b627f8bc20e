// What the functions take.
#include "world.hpp"

namespace edges {

int World::said(int result) {
  if (result < 0) throw Refused{result};
  return result;
}

void* World::destination() {
  dst_ = std::make_shared<Buffer>(src_.size());
  dst_->clear();
  dst_pattern_ = 0;
  return dst_->data();
}

std::uint64_t World::pattern() {
  dst_pattern_ = 0x1122334455667788;
  return dst_pattern_;
}

const haul_request* World::requests() {
  haul_request* made = out<haul_request>();
  for (std::size_t i = 0; i < count; ++i) {
    // The last one's bytes are checked; the first one's are whole before, by the fence.
    made[i] = haul_request_copy(destination(), src_.data(), src_.size());
    kept_.push_back(dst_);
    made[i].flags = HAUL_DEDICATED;
    if (i != 0) made[i].flags |= HAUL_FENCE;
  }
  return made;
}

haul_ticket* World::ticket_slots() {
  return slots_ = out<haul_ticket>();
}

haul_ticket World::ticket() {
  haul_request request = haul_request_copy(destination(), src_.data(), src_.size());
  request.flags = HAUL_DEDICATED;
  haul_ticket made{};
  said(haul_submit(&request, 1, &made));
  copies_.push_back({made, dst_, 0});
  return made;
}

haul_completion* World::completions() {
  haul_request request = haul_request_copy(destination(), src_.data(), src_.size());
  request.flags = HAUL_DEDICATED | HAUL_COMPLETE;
  haul_ticket made{};
  said(haul_submit(&request, 1, &made));
  copies_.push_back({made, dst_, 0});
  said(haul_wait(made));
  return out<haul_completion>();
}

void* World::allocated() {
  void* made = haul_alloc(bytes());
  if (made == nullptr) throw Refused{HAUL_ENOMEM};
  std::memset(made, 1, bytes());
  return made;
}

haul_space World::space() {
  haul_space made{};
  said(haul_space_open(peer_, &made));
  return made;
}

const haul_grant* World::grant() {
  haul_grant* made = out<haul_grant>();
  said(haul_share(allocated(), bytes(), HAUL_SHARE_READ | HAUL_SHARE_WRITE, made));
  return made;
}

haul_atomic_node_options* World::options() {
  haul_atomic_node_options* made = sized<haul_atomic_node_options>();
  made->timeout_ns = timeout_ns / 2;
  return made;
}

haul_atomic_node* World::node() {
  haul_atomic_node* made = nullptr;
  said(haul_atomic_node_open("block:127.0.0.1", options(), &made));
  return last_node_ = made;
}

haul_atomic_window* World::window() {
  haul_atomic_window* made = nullptr;
  said(haul_atomic_window_create(node(), 64 * kib, &made));
  return last_window_ = made;
}

haul_atomic_remote* World::remote() {
  haul_atomic_remote* made = nullptr;
  said(haul_atomic_connect(node(), &name_, &made));
  return last_remote_ = made;
}

haul_atomic_operation* World::adds(std::uint64_t address) {
  haul_atomic_operation* made = out<haul_atomic_operation>();
  for (std::size_t i = 0; i < count; ++i) {
    made[i].code = HAUL_ATOMIC_ADD;
    made[i].width = 8;
    made[i].address = address + 8 * i;
    made[i].operand = 1;
  }
  return made;
}

haul_atomic_operation* World::own_operations() {
  haul_atomic_window_name name{};
  // The window that was made last is the call's.
  said(haul_atomic_window_export(last_window_, &name));
  return adds(name.address);
}

std::uint64_t World::atomic_ticket() {
  std::uint64_t made = 0;
  said(haul_atomic_submit(last_remote_, operations(), count, 7, &made));
  return made;
}

const haul_atomic_lock_options* World::lock_options() {
  haul_atomic_lock_options* made = sized<haul_atomic_lock_options>();
  made->count = 1;
  home_.window = name_;
  home_.offset = 1024;
  said(haul_atomic_window_export(last_window_, &member_.window));
  member_.offset = 0;
  made->home = &home_;
  made->members = &member_;
  return made;
}

haul_atomic_lock* World::lock() {
  haul_atomic_lock* made = nullptr;
  haul_atomic_window* own = window();
  said(haul_atomic_lock_open(last_node_, own, lock_options(), &made));
  return made;
}

haul_atomic_lock* World::held_lock() {
  haul_atomic_lock* made = lock();
  // Another cell's handle of the same member may have left it held.
  said(haul_atomic_lock_acquire(made, 10 * timeout_ns, nullptr));
  return made;
}

haul_atomic_lock* World::started_lock() {
  haul_atomic_lock* made = lock();
  said(haul_atomic_lock_start(made, HAUL_ATOMIC_LOCK_ACQUIRE, timeout_ns));
  return made;
}

int World::outcome(int result) {
  if (slots_ != nullptr && result == static_cast<int>(count) && copies_.size() < copies_.capacity())
    copies_.push_back({slots_[count - 1], dst_, 0});
  return result < 0 ? result : 0;
}

int World::outcome(haul_ticket result) {
  if (copies_.size() < copies_.capacity()) copies_.push_back({result, dst_, dst_pattern_});
  const int now = haul_test(result);
  return now < 0 ? now : 0;
}

int World::outcome(const void* result) {
  return result == nullptr ? HAUL_ENOMEM : 0;
}

}  // namespace edges
