#include "devices/nic/stream.hpp"

#include <algorithm>
#include <cstring>

namespace haul::nic {

void FragmentStream::start(std::size_t fragment_bytes, unsigned window) noexcept {
  *this = FragmentStream{};
  fragment_bytes_ = fragment_bytes;
  window_ = allowed_ = window;
}

void FragmentStream::add(const Load& load) noexcept {
  Loaded& loaded = at(loads_behind_++);
  const std::size_t bytes = load.length - load.front - load.end;
  loaded = {load, behind_, behind_ + (bytes + fragment_bytes_ - 1) / fragment_bytes_};
  behind_ = loaded.behind;
}

unsigned FragmentStream::sendable() const noexcept {
  const std::uint64_t under_way = sent_ - arrived_;
  if (under_way >= allowed_) return 0;
  return static_cast<unsigned>(std::min<std::uint64_t>(allowed_ - under_way, behind_ - sent_));
}

Fragment FragmentStream::fragment(std::uint64_t number) const noexcept {
  std::uint64_t index = first_load_;
  while (number >= at(index).behind) ++index;
  const Loaded& loaded = at(index);
  const std::size_t middle = loaded.load.length - loaded.load.front - loaded.load.end;
  const std::size_t offset = (number - loaded.first) * fragment_bytes_;
  const std::size_t from_start = loaded.load.front + offset;
  return {loaded.load.dst + from_start, loaded.load.src + from_start,
          std::min(fragment_bytes_, middle - offset), loaded.load.dst_shift, loaded.load.src_shift};
}

void FragmentStream::send(unsigned count, std::uint64_t now_ns) noexcept {
  if (sent_ == arrived_ && in_vain_ == 0) waiting_since_ns_ = now_ns;
  if (sent_ == arrived_) last_ns_ = now_ns;
  sent_ += count;
}

std::size_t FragmentStream::good_bytes(const Loaded& loaded) const noexcept {
  if (arrived_ >= loaded.behind) return loaded.load.length - loaded.load.end;
  if (arrived_ <= loaded.first) return loaded.load.front;
  return loaded.load.front + (arrived_ - loaded.first) * fragment_bytes_;
}

void FragmentStream::arrive(unsigned count, std::uint64_t now_ns) noexcept {
  if (count == 0) return;
  arrived_ += count;
  // (What was given up may arrive all the same.)
  sent_ = std::max(sent_, arrived_);
  in_vain_ = 0;
  allowed_ = std::min(allowed_ + count, window_);
  waiting_since_ns_ = last_ns_ = now_ns;
  if (slow_ != 0 && arrived_ - punctual_since_ > punctual_fragments) {
    --slow_;
    punctual_since_ = arrived_;
  }
  for (std::uint64_t index = first_load_; index < loads_behind_ && at(index).first < arrived_;
       ++index) {
    const Loaded& loaded = at(index);
    if (arrived_ < loaded.behind) loaded.load.watermark.publish(good_bytes(loaded));
  }
}

bool FragmentStream::give_up(std::uint64_t now_ns) noexcept {
  if (sent_ == arrived_) return false;
  const std::uint64_t patience_ns = first_patience_ns << std::min(in_vain_ + slow_, most_doublings);
  if (!gap_ && now_ns - last_ns_ < patience_ns) return false;
  if (!gap_) allowed_ = std::min(window_, std::max(allowed_ / 2, least_allowed));
  resent_ += sent_ - arrived_;
  sent_ = arrived_;
  last_ns_ = now_ns;
  gap_ = false;
  ++in_vain_;
  ++turn_;
  return true;
}

void FragmentStream::came_late() noexcept {
  punctual_since_ = arrived_;
  if (late_turn_ == turn_) return;
  late_turn_ = turn_;
  slow_ = std::min(slow_ + 1, most_doublings);
}

std::size_t FragmentStream::finish(Finished* finished, std::size_t most) noexcept {
  std::size_t count = 0;
  while (count < most && !idle() && (failed() || at(first_load_).behind <= arrived_)) {
    const Loaded& loaded = at(first_load_++);
    const Load& load = loaded.load;
    if (arrived_ < loaded.behind) {
      finished[count++] = {load.tag, Outcome{good_bytes(loaded), failure_}};
      continue;
    }
    const std::size_t end = load.length - load.end;
    std::memcpy(reinterpret_cast<void*>(load.dst + end),
                reinterpret_cast<const void*>(load.src + end), load.end);
    load.watermark.publish(load.length);
    finished[count++] = {load.tag, Outcome{load.length, Code::ok}};
  }
  return count;
}

}  // namespace haul::nic
