#include "tests/atomic/soak_check.hpp"

#include <algorithm>

namespace atomic_test {
namespace {

std::uint64_t now_in(const std::uint64_t* word) {
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

}  // namespace

Checker::Checker(const Words& plan, const std::uint64_t* words)
    : words_(words), before_(plan.count()), histories_(plan.count()) {
  for (unsigned word = 0; word < plan.count(); ++word) before_[word] = now_in(&words[word]);
}

Verdict Checker::judge(unsigned word, const std::vector<Done>& history) const {
  switch (Words::use(word)) {
    case Use::counter: return check_counter(before_[word], history);
    case Use::chain: return check_chain(before_[word], history);
    case Use::any:
    case Use::guarded: break;
  }
  return check_any(before_[word], history);
}

void Checker::complain(unsigned word, const std::string& why) {
  if (why_.empty()) why_ = "word " + std::to_string(word) + ": " + why;
}

bool Checker::check(const std::vector<const Client*>& clients) {
  for (const Client* client : clients) {
    for (const Client::Record& record : client->records()) {
      histories_[record.word].push_back(record.done);
    }
  }
  const unsigned bad_before = wrong_ + undecided_;
  for (unsigned word = 0; word < histories_.size(); ++word) {
    std::vector<Done>& history = histories_[word];
    Verdict verdict;
    verdict.finally = {before_[word]};
    if (!history.empty()) verdict = judge(word, history);
    const std::uint64_t now = now_in(&words_[word]);
    const auto& finally = verdict.finally;
    if (verdict.kind == Verdict::right &&
        std::find(finally.begin(), finally.end(), now) == finally.end()) {
      verdict = refuse("it holds " + std::to_string(now) + " though its operations left " +
                       std::to_string(finally.front()));
    }
    if (verdict.kind == Verdict::wrong) ++wrong_;
    if (verdict.kind == Verdict::undecided) ++undecided_;
    if (verdict.kind != Verdict::right) complain(word, verdict.why);
    checked_ += history.size();
    before_[word] = now;
    history.clear();
  }
  return wrong_ + undecided_ == bad_before;
}

bool Checker::is_at_rest() {
  for (unsigned word = 0; word < before_.size(); ++word) {
    if (now_in(&words_[word]) == before_[word]) continue;
    complain(word, "it changed after the last operation had been answered");
    return false;
  }
  return true;
}

}  // namespace atomic_test
