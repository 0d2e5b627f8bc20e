// Remote atomics from C++20: a counter on another node, which two threads share.
#include <array>
#include <cstdint>
#include <haul/atomic.hpp>
#include <iostream>
#include <string>
#include <thread>

namespace {

constexpr int rounds = 200;

// By the window's name alone, as a process of another host would.
void count(const std::string& name) {
  const haul::atomic::node client("none");
  const haul::atomic::remote counter(client, haul::atomic::parse(name));
  for (int i = 0; i < rounds; ++i) counter.fetch_add(0, 1);
}

// Two operations, of which nothing is executed twice, in one round trip.
void add_and_read(const haul::atomic::remote& counter) {
  std::array<haul_atomic_operation, 2> batch{};
  for (haul_atomic_operation& one : batch) {
    one.width = 8;
    one.address = counter.address(0);
  }
  batch[0].code = HAUL_ATOMIC_ADD;
  batch[0].operand = 100;
  batch[1].code = HAUL_ATOMIC_READ;
  counter.run(batch);
  std::cout << "in one packet: " << batch[0].old << ", then " << batch[1].old << "\n";
}

}  // namespace

int main() {
  try {
    const haul::atomic::node owner("block:127.0.0.1");  // xdp:IFACE where you are root
    const haul::atomic::window window(owner, 4096);
    const std::string name = haul::atomic::to_string(window.name());
    std::thread other([&name] { count(name); });
    count(name);
    other.join();

    const haul::atomic::node client("none");
    const haul::atomic::remote counter(client, window.name());
    std::cout << "counted " << counter.read(0) << "\n";
    add_and_read(counter);
    try {
      counter.fetch_add(4096, 1);  // behind the window's end
    } catch (const haul::error& refused) {
      if (refused.code() == HAUL_EFAULT) std::cout << "refused: HAUL_EFAULT\n";
    }
  } catch (const haul::error& failed) {
    std::cerr << "haul error " << failed.code() << ": " << failed.what() << "\n";
    return 1;
  }
}
