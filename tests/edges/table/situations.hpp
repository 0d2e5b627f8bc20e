// The columns of the table: situations in which a function is called.
#pragma once

#include "world.hpp"

namespace edges {

// A cell's process ends by exit() with this where all was well: exit() is part of what is tried.
inline constexpr int good_exit = 42;

struct Situation {
  const char* name;
  const char* words;
  // Runs the cell in its process and returns; the process then exits with good_exit. A check that
  // fails ends it.
  void (*run)(World& w);
  // The outcome must be that of an ordinary call.
  bool as_plain;
  // Every function is called beside a service here, not only those about grants.
  bool service;
  // For these functions alone.
  bool (*applies)(const Function& function);
  // Under sanitizers it cannot be done, since ...; NULL: it can.
  const char* not_sanitized;
};

const std::vector<Situation>& situations();

}  // namespace edges
