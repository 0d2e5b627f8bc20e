// Redis with and without the library: one server for each way, all of which wait while one is
// asked. Over Unix sockets; the servers end with this process.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "bench/kit/buffer.hpp"
#include "bench/transparent/cost_race.hpp"

namespace haul::bench {

class RedisConnection;

class RedisRace {
 public:
  // "", or why there is no Redis here.
  static std::string missing();

  // Starts the servers. Throws CommandFailure if one does not answer within seconds.
  RedisRace(const std::string& directory, const std::vector<ProgramWay>& ways);
  ~RedisRace();  // ends them
  RedisRace(const RedisRace&) = delete;
  RedisRace& operator=(const RedisRace&) = delete;

  // Gives every server a value of this length.
  void set_value(std::size_t bytes);

  struct Turn {
    RunCost large;             // of GETs of the value: their time, the server's CPU time and peak
    double small_p999_ns = 0;  // of short GETs that another connection sends meanwhile
  };
  // Sends `gets` GETs of the value to one server and checks every byte that comes back.
  Turn ask(std::size_t way, unsigned gets);

  // Has one server save its values, which a child of it does (fork), while GETs of the value go on.
  // What is told is the cost of one GET: redis itself asks ten times a second whether the child has
  // ended, so how long saving takes is a multiple of that. Throws CommandFailure if what it saved
  // is broken.
  RunCost save(std::size_t way);

 private:
  struct Server {
    pid_t pid;
    std::unique_ptr<RedisConnection> large, small;
    std::string saved;  // the file's path
  };
  void end_servers();
  double get_large(const Server& server) const;  // how long one GET takes

  std::vector<Server> servers_;
  std::size_t value_bytes_ = 0;
};

}  // namespace haul::bench
