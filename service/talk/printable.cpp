#include "service/talk/printable.hpp"

#include <cstring>

namespace haul::service {

std::string printable(const char* text, std::size_t size) {
  std::string clean(text, strnlen(text, size));
  for (char& c : clean) {
    if (c < ' ' || c > '~') c = '?';
  }
  return clean;
}

}  // namespace haul::service
