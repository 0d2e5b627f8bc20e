// haul from C++20: spans in, tickets out, exceptions for what goes wrong.
#include <cstdint>
#include <haul/haul.hpp>
#include <iostream>
#include <numeric>
#include <span>
#include <vector>

namespace {

constexpr std::size_t count = std::size_t{1} << 20;
constexpr std::size_t step = count / 8;

// Sums a copy front to back while it is being made: each step waits for its own numbers only.
std::uint64_t sum_while_copying(std::span<std::uint64_t> to, std::span<const std::uint64_t> from) {
  haul::ticket ticket = haul::copy(to, from);
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < to.size(); at += step) {
    ticket.wait_range(at * sizeof(std::uint64_t), step * sizeof(std::uint64_t));
    sum = std::accumulate(&to[at], &to[at] + step, sum);
  }
  ticket.wait();  // before anybody changes `from`, or looks at the ticket of a failed copy
  return sum;
}

// Several copies in one call; whoever waits helps to make them.
void copy_in_pieces(std::span<std::uint64_t> to, std::span<const std::uint64_t> from) {
  std::vector<haul_request> requests;
  for (std::size_t at = 0; at < to.size(); at += step) {
    requests.push_back(haul_request_copy(&to[at], &from[at], step * sizeof(std::uint64_t)));
  }
  std::vector<haul::ticket> tickets;
  haul::submit(requests, tickets);
  for (const haul::ticket& ticket : tickets) ticket.wait();
  std::cout << "copied in " << tickets.size() << " pieces\n";
}

}  // namespace

int main() {
  std::vector<std::uint64_t> from(count), to(count);
  std::iota(from.begin(), from.end(), 0);
  try {
    std::cout << "sum: " << sum_while_copying(to, from) << "\n";

    haul::fill(std::span(to), std::uint64_t{3}).wait();
    std::cout << "filled: " << to.front() << " ... " << to.back() << "\n";

    copy_in_pieces(to, from);
    std::cout << "equal: " << std::boolalpha << (to == from) << "\n";

    // A destination that is too short is found before anything is copied.
    (void)haul::copy(std::span(to).first(step), std::span<const std::uint64_t>(from));
  } catch (const haul::error& failed) {
    std::cerr << "haul error " << failed.code() << ": " << failed.what() << "\n";
    return 1;
  } catch (const std::length_error& refused) {
    std::cout << refused.what() << "\n";
  }
}
