# bcisim: the simulator of paper 003 (sim/). Stands alone: it uses nothing of haul.
# bcisim_core is all of it but the command line, for the tests. HAUL_SIM_MISSING names the Debian
# packages that it lacks.
set(HAUL_SIM_MISSING)
if(HAUL_SIM STREQUAL "OFF")
  return()
endif()
find_library(HAUL_ZYDIS Zydis)
find_path(HAUL_ZYDIS_INCLUDE Zydis/Zydis.h)
find_library(HAUL_ZSTD zstd)
find_path(HAUL_ZSTD_INCLUDE zstd.h)
find_package(fmt QUIET)
find_package(CLI11 QUIET)
find_package(nlohmann_json QUIET)
foreach(need "HAUL_ZYDIS libzydis-dev" "HAUL_ZYDIS_INCLUDE libzydis-dev" "HAUL_ZSTD libzstd-dev"
    "HAUL_ZSTD_INCLUDE libzstd-dev" "fmt_FOUND libfmt-dev" "CLI11_FOUND libcli11-dev"
    "nlohmann_json_FOUND nlohmann-json3-dev")
  string(REPLACE " " ";" need "${need}")
  list(GET need 0 found)
  list(GET need 1 package)
  if(NOT ${found})
    list(APPEND HAUL_SIM_MISSING ${package})
  endif()
endforeach()
list(REMOVE_DUPLICATES HAUL_SIM_MISSING)
if(HAUL_SIM_MISSING)
  if(HAUL_SIM STREQUAL "ON")
    list(JOIN HAUL_SIM_MISSING " " names)
    message(FATAL_ERROR "The simulator needs ${names}; install them or set HAUL_SIM=OFF.")
  endif()
  return()
endif()

set(sim_dir "${PROJECT_SOURCE_DIR}/sim")
file(GLOB_RECURSE sim_sources CONFIGURE_DEPENDS "${sim_dir}/format/*.cpp" "${sim_dir}/convert/*.cpp"
  "${sim_dir}/model/*.cpp" "${sim_dir}/study/*.cpp")
add_library(bcisim_libraries INTERFACE)
target_link_libraries(bcisim_libraries INTERFACE fmt::fmt nlohmann_json::nlohmann_json
  "${HAUL_ZYDIS}" "${HAUL_ZSTD}" Threads::Threads)
target_include_directories(bcisim_libraries INTERFACE "${HAUL_ZYDIS_INCLUDE}" "${HAUL_ZSTD_INCLUDE}")
add_library(bcisim_core STATIC ${sim_sources})
target_link_libraries(bcisim_core PUBLIC haul_options bcisim_libraries)
target_include_directories(bcisim_core PUBLIC "${sim_dir}")
# A simulator is nothing without speed: also where the rest is built for debugging.
if(NOT HAUL_SANITIZE)
  target_compile_options(bcisim_core PRIVATE -O3)
endif()

file(GLOB sim_commands CONFIGURE_DEPENDS "${sim_dir}/cli/*.cpp")
add_executable(bcisim ${sim_commands})
target_link_libraries(bcisim PRIVATE bcisim_core CLI11::CLI11)
target_compile_definitions(bcisim PRIVATE "BCISIM_SOURCE=\"${sim_dir}\"")
haul_precompile(bcisim <CLI/CLI.hpp> <nlohmann/json.hpp> <fmt/format.h>)
