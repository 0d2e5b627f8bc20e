// A connection to Redis over a Unix socket, as far as the measurement needs one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace haul::bench {

class RedisConnection {
 public:
  // Throws CommandFailure if nobody answers at `path` within seconds.
  explicit RedisConnection(const std::string& path);
  ~RedisConnection();
  RedisConnection(const RedisConnection&) = delete;
  RedisConnection& operator=(const RedisConnection&) = delete;

  void set(std::string_view key, std::string_view value);
  // The value, which lasts until the next call. Throws CommandFailure unless it has `bytes`.
  std::string_view get(std::string_view key, std::size_t bytes);
  // What it answers to a command of one line: a line, or a text of lines. Throws CommandFailure
  // where it refuses.
  std::string ask(std::string_view command);

 private:
  void send_all(std::string_view text);
  std::size_t receive(std::size_t at);  // into reply_; how many

  int fd_;
  std::vector<char> reply_;
};

}  // namespace haul::bench
