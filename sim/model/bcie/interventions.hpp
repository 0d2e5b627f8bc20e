// Accesses of other processors and devices while a copy is under way (paper 003, III-C4): one that
// touches what is not copied yet is buffered until it is, or refused, and its sender tries again.
#pragma once

#include <cstdint>
#include <vector>

namespace bcisim {

struct Intervention {
  std::uint64_t physical = 0;
  unsigned bytes = 0;
  bool writes = false;  // takes the blocks away, else only makes them clean
};

class Interventions {
 public:
  enum class Policy { buffer, refuse };
  enum class Answer { processed, buffered, refused };

  explicit Interventions(Policy policy) : policy_(policy) {}

  // is_pending(intervention): must it wait? process(intervention) is called when not.
  template <class IsPending, class Process>
  Answer request(const Intervention& one, IsPending&& is_pending, Process&& process) {
    // Later ones of the same addresses do not overtake.
    if (!is_pending(one) && !touches_buffered(one)) {
      process(one);
      return Answer::processed;
    }
    if (policy_ == Policy::refuse) return Answer::refused;
    buffered_.push_back(one);
    return Answer::buffered;
  }
  // Blocks are copied: processes the buffered ones that need not wait any longer, in their order.
  template <class IsPending, class Process>
  void release(IsPending&& is_pending, Process&& process) {
    std::vector<Intervention> waiting;
    waiting.swap(buffered_);
    for (const Intervention& one : waiting) request(one, is_pending, process);
  }
  bool empty() const { return buffered_.empty(); }

 private:
  bool touches_buffered(const Intervention& one) const {
    for (const Intervention& other : buffered_) {
      if (one.physical < other.physical + other.bytes &&
          other.physical < one.physical + one.bytes) {
        return true;
      }
    }
    return false;
  }

  Policy policy_;
  std::vector<Intervention> buffered_;
};

}  // namespace bcisim
