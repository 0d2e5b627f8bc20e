// A page over HTTP: GET /metrics, and nothing else.
//
// Whoever may connect may also be slow or hostile, so each visitor has a bounded request, a bounded
// time from its coming to its going, and one answer; and there is a bounded number of them: the
// oldest makes room for the next. Nothing here waits but the page itself.
#pragma once

#include <poll.h>

#include <chrono>
#include <functional>
#include <list>
#include <string>
#include <vector>

namespace haul::cli {

// One thread.
class PageServer {
 public:
  // What /metrics shows. Throws std::runtime_error: the visitor gets 503 and its sentence.
  using Page = std::function<std::string()>;

  // `listener` stays the caller's. at_port: a browser may reach it, too, so a request that names
  // another host than the loopback is refused: a web page that has its own name point to this
  // machine reads nothing here.
  PageServer(int listener, bool at_port, const char* content_type, Page page);
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  // What to wait for before attend(), and how long at most (-1: no limit).
  void watch(std::vector<pollfd>* entries) const;
  int patience_ms() const;
  // Serves whoever can be served now.
  void attend();

 private:
  using Clock = std::chrono::steady_clock;
  struct Visitor {
    int fd = -1;
    Clock::time_point until;
    std::string request, answer;
    std::size_t sent = 0, heard = 0;
    bool done = false;  // all is sent; what it still says is read, so that closing resets nothing
  };

  void accept_some();
  bool serve(Visitor* visitor);  // false: it is over
  bool listen_to(Visitor* visitor);
  std::string answer_to(const std::string& request) const;
  std::string page_answer(bool with_body) const;

  int listener_;
  bool at_port_;
  std::string content_type_;
  Page page_;
  std::list<Visitor> visitors_;  // the oldest first
  Clock::time_point rest_until_{};
};

}  // namespace haul::cli
