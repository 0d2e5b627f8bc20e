# The command `haul`: cli/ and bench/ on the shared library, with fmt, CLI11 and json.
# HAUL_CLI_MISSING names the Debian packages it lacks.
set(HAUL_CLI_MISSING)
if(NOT HAUL_CLI STREQUAL "OFF")
  find_package(fmt QUIET)
  find_package(CLI11 QUIET)
  find_package(nlohmann_json QUIET)
  foreach(pair fmt:libfmt-dev CLI11:libcli11-dev nlohmann_json:nlohmann-json3-dev)
    string(REPLACE ":" ";" pair ${pair})
    list(GET pair 0 package)
    list(GET pair 1 debian)
    if(NOT ${package}_FOUND)
      list(APPEND HAUL_CLI_MISSING ${debian})
    endif()
  endforeach()
  if(HAUL_CLI_MISSING AND HAUL_CLI STREQUAL "ON")
    list(JOIN HAUL_CLI_MISSING " " names)
    message(FATAL_ERROR "The command haul needs ${names}; install them or set HAUL_CLI=OFF.")
  endif()
endif()

file(GLOB_RECURSE command_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/cli/*.cpp")
# Names of functions in `haul profile` and `haul run --transparent --report`.
find_library(HAUL_LIBELF elf)
find_path(HAUL_LIBELF_INCLUDE gelf.h)
if(HAUL_LIBELF AND HAUL_LIBELF_INCLUDE)
  list(FILTER command_sources EXCLUDE REGEX "/no_symbols\\.cpp")
else()
  list(FILTER command_sources EXCLUDE REGEX "/transparent/symbols\\.cpp")
endif()
# Rings are calibrated with the provider's own code.
if(TARGET haul_fabric)
  list(FILTER command_sources EXCLUDE REGEX "/no_ring_pair\\.cpp")
else()
  list(FILTER command_sources EXCLUDE REGEX "/rings/ring_pair\\.cpp")
endif()
file(GLOB_RECURSE bench_sources CONFIGURE_DEPENDS
  "${PROJECT_SOURCE_DIR}/tools/*.cpp" "${PROJECT_SOURCE_DIR}/bench/*.cpp")
# What measures is compiled to be fast; what only starts the programs that do is not.
set(launcher_sources ${bench_sources})
list(FILTER bench_sources EXCLUDE REGEX "/bench/messages/")
list(FILTER launcher_sources INCLUDE REGEX "/bench/messages/")
if(NOT HAUL_CLI STREQUAL "OFF" AND NOT HAUL_CLI_MISSING AND command_sources)
  add_library(haul_bench OBJECT ${bench_sources})
  add_executable(haul_cli ${command_sources} ${launcher_sources})
  # A newcomer waits for these: line numbers are enough. That takes four tenths off the whole compilation.
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
    target_compile_options(haul_bench PRIVATE -g1)
    target_compile_options(haul_cli PRIVATE -g1 -Og)
  endif()
  haul_precompile(haul_bench <nlohmann/json.hpp> <fmt/format.h>)
  haul_precompile(haul_cli <nlohmann/json.hpp> <fmt/format.h> <CLI/CLI.hpp>)
  # Embedded by .incbin, which no compiler reports as a dependence.
  file(GLOB embedded CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/messages/mpi/*")
  set_source_files_properties("${PROJECT_SOURCE_DIR}/bench/messages/mpi_sources.cpp" PROPERTIES
    OBJECT_DEPENDS "${embedded};${PROJECT_SOURCE_DIR}/scripts/peers.sh")
  target_include_directories(haul_bench PUBLIC "${PROJECT_SOURCE_DIR}")
  target_link_libraries(haul_bench PUBLIC
    haul_options haul haul_atomic haul_service haul_internal fmt::fmt nlohmann_json::nlohmann_json)
  target_link_libraries(haul_cli PRIVATE haul_bench haul_atomic CLI11::CLI11)
  # (After the warnings, one of which it takes back.) Apart: what has names that others use as well, and a file with
  # dependences of its own (above).
  haul_unity(haul_bench APART "/(fresh|small_calls|clients|order|receive)\\.cpp$")
  haul_unity(haul_cli APART "/mpi_sources\\.cpp$")
  if(TARGET haul_fabric)
    target_link_libraries(haul_cli PRIVATE haul_fabric)
  endif()
  if(HAUL_LIBELF AND HAUL_LIBELF_INCLUDE)
    target_link_libraries(haul_cli PRIVATE "${HAUL_LIBELF}")
    target_include_directories(haul_cli PRIVATE "${HAUL_LIBELF_INCLUDE}")
  endif()
  set_target_properties(haul_cli PROPERTIES OUTPUT_NAME haul
    INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  add_dependencies(haul_cli haul_mem)  # `haul run --transparent`
  # What `haul atomic`, `haul run --mpi` and the tour open.
  foreach(plugin haul_atomic_xdp haul_atomic_fabric haul_fi haul_mpi)
    if(TARGET ${plugin})
      add_dependencies(haul_cli ${plugin})
    endif()
  endforeach()
endif()

# What `make install` installs, without the tests.
add_custom_target(haul_product DEPENDS haul)
if(TARGET haul_cli)
  add_dependencies(haul_product haul_cli)
  if(NOT HAUL_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
    set(HAUL_PAGES_DIR "${PROJECT_BINARY_DIR}/pages")
    add_custom_command(OUTPUT "${HAUL_PAGES_DIR}/done" VERBATIM
      COMMAND "${CMAKE_COMMAND}" -DHAUL=$<TARGET_FILE:haul_cli> -DOUTPUT=${HAUL_PAGES_DIR}
        -P "${PROJECT_SOURCE_DIR}/cmake/GeneratePages.cmake"
      DEPENDS haul_cli "${PROJECT_SOURCE_DIR}/cmake/GeneratePages.cmake"
      COMMENT "Manual pages and completions")
    add_custom_target(haul_pages ALL DEPENDS "${HAUL_PAGES_DIR}/done")
    add_dependencies(haul_product haul_pages)
  endif()
endif()
