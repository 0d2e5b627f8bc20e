# Remote atomics through the C ABI (haul_atomic_tests), and the two responders against each other
# (haul_atomic_twin_tests). fmt is bench/remote/hosts/namespaces.cpp's.
find_package(fmt QUIET)
if(NOT fmt_FOUND)
  return()
endif()
file(GLOB atomic_tests CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/atomic/*_test.cpp")
list(FILTER atomic_tests EXCLUDE REGEX "/twins_test")
add_executable(haul_atomic_tests ${atomic_tests} atomic/node.cpp atomic/handmade.cpp
  "${PROJECT_SOURCE_DIR}/bench/remote/hosts/namespaces.cpp")
target_include_directories(haul_atomic_tests PRIVATE "${PROJECT_SOURCE_DIR}")
target_link_libraries(haul_atomic_tests PRIVATE haul_options haul_atomic fmt::fmt Threads::Threads)
haul_gtest(haul_atomic_tests atomic)
if(TARGET haul_atomic_fabric)
  add_dependencies(haul_atomic_tests haul_atomic_fabric)
  target_compile_definitions(haul_atomic_tests PRIVATE HAUL_TEST_FABRIC)
endif()
if(TARGET haul_atomic_xdp)
  add_dependencies(haul_atomic_tests haul_atomic_xdp)
  target_compile_definitions(haul_atomic_tests PRIVATE HAUL_TEST_XDP)

  add_executable(haul_atomic_twin_tests atomic/twins_test.cpp
    "${PROJECT_SOURCE_DIR}/bench/remote/hosts/namespaces.cpp")
  add_dependencies(haul_atomic_twin_tests haul_atomic_xdp)
  target_link_libraries(haul_atomic_twin_tests PRIVATE haul_atomic_internal fmt::fmt)
  # Where the plug-in is looked for: as the program's own path (RPATH), since under AddressSanitizer
  # dlopen() is called by the sanitizer's runtime, to which a RUNPATH of the caller does not apply.
  set_target_properties(haul_atomic_twin_tests PROPERTIES BUILD_RPATH "${PROJECT_BINARY_DIR}/lib")
  target_link_options(haul_atomic_twin_tests PRIVATE -Wl,--disable-new-dtags)
  haul_gtest(haul_atomic_twin_tests atomic NAME twins)
endif()
