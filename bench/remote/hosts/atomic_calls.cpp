#include "bench/remote/hosts/atomic_calls.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/machine/clock.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

constexpr std::size_t warm_calls = 20;

void expect(std::uint64_t found, std::uint64_t expected, const char* what) {
  if (found != expected)
    throw tools::CommandFailure(
        fmt::format("{} returned {} instead of {}; this is a bug of haul", what, found, expected));
}

}  // namespace

const char* op_name(Op op) {
  switch (op) {
    case Op::add: return "fetch&add";
    case Op::swap: return "fetch&write";
    case Op::cas_hit: return "compare&swap hit";
    case Op::cas_miss: return "compare&swap miss";
    case Op::read: return "read";
    case Op::write: return "write";
  }
  return "";
}

Calls time_calls(const Limit& limit, std::uint64_t every_ns, const std::function<void()>& call) {
  for (std::size_t i = 0; i < warm_calls; ++i) call();
  Calls calls;
  calls.times_us.reserve(limit.count);
  const std::uint64_t first = now_ns();
  std::uint64_t begin = first, end = first;
  while (calls.times_us.size() < limit.count && begin - first < limit.ns) {
    call();
    end = now_ns();
    calls.times_us.push_back(static_cast<double>(end - begin) / 1e3);
    const std::uint64_t next = std::max(begin + every_ns, end);
    for (begin = end; begin < next; begin = now_ns()) __builtin_ia32_pause();
  }
  calls.rate_per_s =
      static_cast<double>(calls.times_us.size()) * 1e9 / static_cast<double>(end - first);
  return calls;
}

Asker::Asker(const Node& client, const Window& home)
    : home_(home), remote_(connect(client, name_of(home))), address_(name_of(home).address) {}

void Asker::call(Op op) {
  std::uint64_t old = current_;
  int status = 0;
  switch (op) {
    case Op::add:
      status = haul_atomic_fetch_add(remote_.get(), address_, 3, &old);
      expect(old, current_, "fetch&add");
      current_ += 3;
      break;
    case Op::swap:
      status = haul_atomic_fetch_write(remote_.get(), address_, current_ + 5, &old);
      expect(old, current_, "fetch&write");
      current_ += 5;
      break;
    case Op::cas_hit:
      status = haul_atomic_compare_swap(remote_.get(), address_, current_ + 7, current_, &old);
      expect(old, current_, "compare&swap");
      current_ += 7;
      break;
    case Op::cas_miss:
      status = haul_atomic_compare_swap(remote_.get(), address_, 0, current_ + 1, &old);
      expect(old, current_, "compare&swap");
      break;
    case Op::read:
      status = haul_atomic_read(remote_.get(), address_, &old);
      expect(old, current_, "read");
      break;
    case Op::write: status = haul_atomic_write(remote_.get(), address_, ++current_); break;
  }
  tools::require(status, op_name(op));
}

void Asker::check_home() const {
  expect(word_of(home_), current_, "the word at home");
}

Calls Asker::ask(Op op, const Limit& limit, std::uint64_t every_ns) {
  Calls calls = time_calls(limit, every_ns, [&] { call(op); });
  check_home();
  return calls;
}

double Asker::adds_per_s(unsigned batch, unsigned packets, std::uint64_t ns) {
  std::array<haul_atomic_operation, HAUL_ATOMIC_MAX_BATCH> operations{};
  for (haul_atomic_operation& operation : operations) {
    operation.code = HAUL_ATOMIC_ADD;
    operation.width = 8;
    operation.address = address_;
    operation.operand = 1;
  }
  constexpr std::size_t at_once = 16;
  std::array<haul_atomic_completion, at_once> answers;
  unsigned unanswered = 0;
  std::uint64_t answered = 0;
  const std::uint64_t begin = now_ns();
  std::uint64_t now = begin;
  while (unanswered > 0 || now - begin < ns) {
    while (unanswered < packets && now - begin < ns) {
      tools::require(haul_atomic_submit(remote_.get(), operations.data(), batch, 0, nullptr),
                     "haul_atomic_submit()");
      ++unanswered;
    }
    const int count = haul_atomic_reap(remote_.get(), answers.data(), at_once);
    tools::require(count, "haul_atomic_reap()");
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      tools::require(answers[i].status, "a fetch&add");
      answered += answers[i].count;
    }
    unanswered -= static_cast<unsigned>(count);
    now = now_ns();
  }
  current_ += answered;
  check_home();
  return static_cast<double>(answered) * 1e9 / static_cast<double>(now - begin);
}

}  // namespace haul::bench
