#include "tests/atomic/soak_server.hpp"

#include "tools/failure.hpp"

namespace atomic_test {

haul_atomic_node_options soak_options() {
  haul_atomic_node_options options{};
  options.size = sizeof options;
  options.sessions = 4096;
  return options;
}

void must_do(int code, const char* what) {
  if (code >= 0) return;
  throw haul::tools::CommandFailure(std::string(what) + " failed: " + haul_last_error());
}

std::map<std::string, std::uint64_t> counters_of(haul_atomic_node* node) {
  std::uint64_t values[64] = {};
  const int count = haul_atomic_node_counters(node, values, std::size(values));
  std::map<std::string, std::uint64_t> counters;
  for (int i = 0; i < count; ++i) {
    const auto index = static_cast<std::size_t>(i);
    counters[haul_atomic_node_counter_name(index)] = values[index];
  }
  return counters;
}

namespace {

class LibraryServer final : public Server {
 public:
  LibraryServer(const haul::bench::Namespace& host, const std::string& responder,
                std::uint64_t bytes) {
    const haul::bench::Inside inside(host);
    const haul_atomic_node_options options = soak_options();
    must_do(haul_atomic_node_open(responder.c_str(), &options, &node_), "opening the server");
    must_do(haul_atomic_window_create(node_, bytes, &window_), "making the window");
    must_do(haul_atomic_window_export(window_, &name_), "naming the window");
  }
  ~LibraryServer() override {
    haul_atomic_window_destroy(window_);
    haul_atomic_node_close(node_);
  }

  std::string description() const override {
    char text[256] = "";
    haul_atomic_node_describe(node_, text, sizeof text);
    return text;
  }
  haul_atomic_window_name name() const override { return name_; }
  std::uint64_t* words() const override {
    return static_cast<std::uint64_t*>(haul_atomic_window_memory(window_));
  }
  std::map<std::string, std::uint64_t> counters() const override { return counters_of(node_); }

 private:
  haul_atomic_node* node_ = nullptr;
  haul_atomic_window* window_ = nullptr;
  haul_atomic_window_name name_{};
};

}  // namespace

std::unique_ptr<Server> serve(const haul::bench::Namespace& host, const std::string& responder,
                              std::uint64_t bytes) {
  return std::make_unique<LibraryServer>(host, responder, bytes);
}

}  // namespace atomic_test
