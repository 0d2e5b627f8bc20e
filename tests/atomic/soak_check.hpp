// Checks what the clients have recorded between two moments of rest, word by word.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/atomic/soak_client.hpp"

namespace atomic_test {

class Checker {
 public:
  // `words` as they are now, at rest.
  Checker(const Words& plan, const std::uint64_t* words);

  // A round that has ended. False: some history is wrong; why() says which first.
  bool check(const std::vector<const Client*>& clients);
  // Has nothing touched the words since?
  bool is_at_rest();

  const std::string& why() const { return why_; }
  std::uint64_t checked() const { return checked_; }  // operations
  unsigned wrong_words() const { return wrong_; }     // histories that were refused
  unsigned undecided_words() const { return undecided_; }

 private:
  Verdict judge(unsigned word, const std::vector<Done>& history) const;
  void complain(unsigned word, const std::string& why);

  const std::uint64_t* const words_;
  std::vector<std::uint64_t> before_;         // by word
  std::vector<std::vector<Done>> histories_;  // by word
  std::uint64_t checked_ = 0;
  unsigned wrong_ = 0, undecided_ = 0;
  std::string why_;
};

}  // namespace atomic_test
