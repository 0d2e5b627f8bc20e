// A test of two sides that runs unchanged in two surroundings: two threads of this process, and two
// processes. The second process is this program again, told by its environment to play the other
// side of the one test: libfabric is then initialised in it afresh, as in two ranks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "node.hpp"

namespace fabric_test {

enum class Surrounding { one_process, two_processes };
const char* name_of(Surrounding surrounding);

// The other side's ear, beside the fabric: a stream socket. Every call progresses the node while it
// waits, since a provider may move bytes in calls alone.
class Link {
 public:
  Link(int descriptor, Node& node) : descriptor_(descriptor), node_(node) {}

  void put_bytes(const void* bytes, std::size_t size);
  void get_bytes(void* bytes, std::size_t size);
  template <typename T>
  void put(const T& value) {
    put_bytes(&value, sizeof value);
  }
  template <typename T>
  T get() {
    T value{};
    get_bytes(&value, sizeof value);
    return value;
  }
  std::vector<std::byte> exchange(const std::vector<std::byte>& mine);
  // Both sides have come here.
  void meet();

 private:
  int descriptor_;
  Node& node_;
};

using Side = std::function<void(Node& node, fi_addr_t peer, Link& link)>;

// Runs both sides to their end, each with a node of the wish. In the second process it runs the
// right one alone; a test must do nothing after it that needs both.
void run_sides(Surrounding surrounding, const Wish& wish, const Side& left, const Side& right);

// Does the provider offer what the wish asks for? For haul, no answer is a failure.
bool offered(const Wish& wish);

}  // namespace fabric_test
