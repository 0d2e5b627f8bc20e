#include "cli/service/page/page_server.hpp"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>

#include "base/net/inet.hpp"
#include "base/net/socket.hpp"
#include "base/os/os.hpp"

namespace haul::cli {
namespace {

constexpr std::size_t most_visitors = 16, most_request_bytes = 8192;
// What a visitor may go on to say after its answer before it is cut off.
constexpr std::size_t most_heard_bytes = std::size_t{2} << 20;
constexpr auto visit_time = std::chrono::seconds(5);
// Where no descriptor is left, the listener stays readable: it is looked at again only later.
constexpr auto rest_time = std::chrono::milliseconds(100);
constexpr int reads_at_once = 16, accepts_at_once = 16;

struct StatusLine {
  int code;
  const char* text;
};
constexpr StatusLine ok{200, "OK"}, bad_request{400, "Bad Request"}, forbidden{403, "Forbidden"},
    not_found{404, "Not Found"}, not_allowed{405, "Method Not Allowed"},
    too_large{431, "Request Header Fields Too Large"}, unavailable{503, "Service Unavailable"};

std::string response(const StatusLine& status, const std::string& type, const std::string& body,
                     bool with_body) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}Connection: close\r\n\r\n{}",
      status.code, status.text, type, body.size(),
      status.code == not_allowed.code ? "Allow: GET, HEAD\r\n" : "", with_body ? body : "");
}

std::string sentence(const StatusLine& status, const std::string& text, bool with_body = true) {
  return response(status, "text/plain; charset=utf-8", text + "\n", with_body);
}

// Where the header ends, its blank line included; npos if it has not ended yet.
std::size_t end_of_header(const std::string& request) {
  const std::size_t strict = request.find("\r\n\r\n"), bare = request.find("\n\n");
  return std::min(strict, bare);
}

std::vector<std::string> split_words(const std::string& line) {
  std::vector<std::string> parts(1);
  for (const char c : line) {
    if (c == ' ') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// The host that a request names, without its port; "" if it names none.
std::string host_of(const std::string& header) {
  constexpr const char* field = "\nhost:";
  constexpr std::size_t field_bytes = 6;
  for (std::size_t at = header.find('\n'); at != std::string::npos;
       at = header.find('\n', at + 1)) {
    if (strncasecmp(header.c_str() + at, field, field_bytes) != 0) continue;
    std::string host = header.substr(at + field_bytes);
    host.erase(std::min(host.find_first_of("\r\n"), host.size()));
    host.erase(0, host.find_first_not_of(" \t"));
    host.erase(host.find_last_not_of(" \t") + 1);
    const std::size_t colon = host.rfind(':');
    if (colon != std::string::npos && host.find(']', colon) == std::string::npos) host.erase(colon);
    return host;
  }
  return "";
}

bool names_loopback(const std::string& host) {
  return host.empty() || host == "127.0.0.1" || host == "[::1]" ||
         strcasecmp(host.c_str(), "localhost") == 0;
}

}  // namespace

PageServer::PageServer(int listener, bool at_port, const char* content_type, Page page)
    : listener_(listener), at_port_(at_port), content_type_(content_type), page_(std::move(page)) {}

PageServer::~PageServer() {
  for (const Visitor& visitor : visitors_) os::close_fd(visitor.fd);
}

void PageServer::watch(std::vector<pollfd>* entries) const {
  if (Clock::now() >= rest_until_) entries->push_back({listener_, POLLIN, 0});
  for (const Visitor& visitor : visitors_) {
    const bool speaks = visitor.sent < visitor.answer.size();
    entries->push_back({visitor.fd, static_cast<short>(speaks ? POLLOUT : POLLIN), 0});
  }
}

int PageServer::patience_ms() const {
  const auto now = Clock::now();
  auto next = visitors_.empty() ? now + std::chrono::hours(1) : visitors_.front().until;
  if (now < rest_until_) next = std::min(next, rest_until_);
  if (visitors_.empty() && now >= rest_until_) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - now).count();
  return static_cast<int>(std::max<long long>(left, 0));
}

void PageServer::attend() {
  for (auto it = visitors_.begin(); it != visitors_.end();) {
    if (serve(&*it)) {
      ++it;
      continue;
    }
    os::close_fd(it->fd);
    it = visitors_.erase(it);
  }
  if (Clock::now() >= rest_until_) accept_some();
}

void PageServer::accept_some() {
  for (int i = 0; i < accepts_at_once; ++i) {
    const int fd = os::accept_from(listener_);
    if (fd == -ECONNABORTED || fd == -EINTR) continue;
    if (fd == -EAGAIN) return;
    if (fd < 0) {
      rest_until_ = Clock::now() + rest_time;
      return;
    }
    if (visitors_.size() >= most_visitors) {
      os::close_fd(visitors_.front().fd);
      visitors_.pop_front();
    }
    visitors_.emplace_back();
    visitors_.back().fd = fd;
    visitors_.back().until = Clock::now() + visit_time;
    if (!serve(&visitors_.back())) {
      os::close_fd(fd);
      visitors_.pop_back();
    }
  }
}

bool PageServer::serve(Visitor* visitor) {
  if (Clock::now() >= visitor->until) return false;
  if (visitor->answer.empty() && !listen_to(visitor)) return false;
  while (visitor->sent < visitor->answer.size()) {
    const ssize_t sent = os::send_stream(visitor->fd, visitor->answer.data() + visitor->sent,
                                         visitor->answer.size() - visitor->sent);
    if (sent == -EAGAIN) return true;
    if (sent <= 0) return false;
    visitor->sent += static_cast<std::size_t>(sent);
  }
  if (visitor->answer.empty()) return true;
  if (!visitor->done) os::shut_sending(visitor->fd);
  visitor->done = true;
  return listen_to(visitor);
}

// Reads what is there. Makes the answer once the request is whole, or is none.
bool PageServer::listen_to(Visitor* visitor) {
  char bytes[4096];
  for (int i = 0; i < reads_at_once; ++i) {
    const ssize_t got = os::receive_stream(visitor->fd, bytes, sizeof bytes);
    if (got == -EAGAIN || got == -EINTR) return true;
    if (got <= 0) return false;
    visitor->heard += static_cast<std::size_t>(got);
    if (visitor->heard > most_heard_bytes) return false;
    if (visitor->done) continue;
    visitor->request.append(bytes, static_cast<std::size_t>(got));
    if (end_of_header(visitor->request) != std::string::npos) {
      visitor->answer = answer_to(visitor->request);
      return true;
    }
    if (visitor->request.size() > most_request_bytes) {
      visitor->answer =
          sentence(too_large, fmt::format("a request has {} bytes at most", most_request_bytes));
      return true;
    }
  }
  return true;
}

std::string PageServer::answer_to(const std::string& request) const {
  const std::string header = request.substr(0, end_of_header(request));
  std::string line = header.substr(0, header.find('\n'));
  if (!line.empty() && line.back() == '\r') line.pop_back();
  const std::vector<std::string> words = split_words(line);
  const bool spoken = words.size() == 3 && words[2].size() == 8 &&
                      words[2].rfind("HTTP/1.", 0) == 0 && words[2][7] >= '0' && words[2][7] <= '9';
  if (!spoken || words[0].empty() || words[1].empty())
    return sentence(bad_request, "this is no request of HTTP/1.1");
  const bool head = words[0] == "HEAD";
  if (!head && words[0] != "GET") return sentence(not_allowed, "only GET and HEAD are answered");
  if (at_port_ && !names_loopback(host_of(header)))
    return sentence(forbidden, "ask for localhost; others' names are not answered", !head);
  const std::string target = words[1].substr(0, words[1].find('?'));
  if (target == "/metrics") return page_answer(!head);
  if (target == "/") return sentence(ok, "haul serve: the figures are at /metrics", !head);
  return sentence(not_found, "there is nothing but /metrics", !head);
}

std::string PageServer::page_answer(bool with_body) const {
  try {
    return response(ok, content_type_, page_(), with_body);
  } catch (const std::runtime_error& trouble) {
    return sentence(unavailable, trouble.what(), with_body);
  }
}

}  // namespace haul::cli
