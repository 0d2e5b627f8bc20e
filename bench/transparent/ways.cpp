#include "bench/transparent/ways.hpp"

#include "bench/transparent/preload.hpp"

namespace haul::bench {

std::vector<ProgramWay> program_ways(bool quick) {
  const tools::Environment preloaded = transparent_environment("");
  std::vector<ProgramWay> all = {{"none", {}}};
  for (const char* plan : {"auto", "caller", "together"}) {
    tools::Environment environment = preloaded;
    environment.emplace_back("HAUL_TRANSPARENT_PLAN", plan);
    all.push_back({plan, environment});
    if (quick) return all;
  }
  all.push_back({"malloc's huge pages", {{"GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"}}});
  return all;
}

}  // namespace haul::bench
