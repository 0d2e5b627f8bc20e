# The provider's tests. They need libfabric alone, so they are built wherever it is; they are run
# where the provider is built as well. By hand, on any provider:
#   HAUL_TEST_PROVIDER='tcp;ofi_rxm' haul_fabric_tests
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(HAUL_LIBFABRIC QUIET IMPORTED_TARGET libfabric)
endif()
if(NOT HAUL_LIBFABRIC_FOUND)
  return()
endif()
set(fabric_dir "${CMAKE_CURRENT_SOURCE_DIR}/fabric")
set(fabric_environment ${script_environment} "FI_PROVIDER_PATH=${PROJECT_BINARY_DIR}/lib"
  "HAUL_TEST_PROVIDER=haul"
  # Debian's libfabric loads a library that prints a backtrace of its own.
  "IPATH_NO_BACKTRACE=1")
file(GLOB fabric_sources CONFIGURE_DEPENDS "${fabric_dir}/*_test.cpp")
add_executable(haul_fabric_tests ${fabric_sources}
  "${fabric_dir}/node.cpp" "${fabric_dir}/sides.cpp" "${fabric_dir}/transfer.cpp")
target_link_libraries(haul_fabric_tests PRIVATE
  haul_options PkgConfig::HAUL_LIBFABRIC GTest::gtest GTest::gtest_main Threads::Threads)
haul_precompile(haul_fabric_tests <gtest/gtest.h>)
set_target_properties(haul_fabric_tests PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${programs_dir}")
foreach(program kill soak refuse main_ends)
  add_executable(fabric_${program} "${fabric_dir}/${program}.cpp")
  target_link_libraries(fabric_${program} PRIVATE haul_options)
  set_target_properties(fabric_${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${programs_dir}")
endforeach()
foreach(program kill soak)
  target_sources(fabric_${program} PRIVATE "${fabric_dir}/rank.cpp")
  target_link_libraries(fabric_${program} PRIVATE PkgConfig::HAUL_LIBFABRIC)
endforeach()
target_sources(fabric_main_ends PRIVATE "${fabric_dir}/node.cpp" "${fabric_dir}/transfer.cpp")
target_link_libraries(fabric_main_ends PRIVATE PkgConfig::HAUL_LIBFABRIC GTest::gtest Threads::Threads)

if(NOT TARGET haul_fi)
  return()
endif()
# Several variables do not fit through gtest_discover_tests(): a list within its list of properties.
gtest_discover_tests(haul_fabric_tests TEST_PREFIX "fabric." TEST_LIST haul_fabric_test_names
  DISCOVERY_TIMEOUT 60 PROPERTIES LABELS fabric TIMEOUT ${unit_timeout_s} RUN_SERIAL ON)
set(fabric_properties "${CMAKE_CURRENT_BINARY_DIR}/fabric_properties.cmake")
file(GENERATE OUTPUT "${fabric_properties}" CONTENT
  "set_tests_properties(\${haul_fabric_test_names} PROPERTIES ENVIRONMENT\n  \"${fabric_environment}\")\n")
set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${fabric_properties}")
add_test(NAME fabric.kill COMMAND fabric_kill --kills 20)
add_test(NAME fabric.soak COMMAND fabric_soak --seconds 10)
add_test(NAME fabric.main_ends COMMAND fabric_main_ends)
add_test(NAME fabric.environment COMMAND bash "${fabric_dir}/environment.sh")
set_tests_properties(fabric.kill fabric.soak fabric.main_ends fabric.environment PROPERTIES LABELS fabric
  TIMEOUT ${script_timeout_s} SKIP_RETURN_CODE 77 RUN_SERIAL ON ENVIRONMENT "${fabric_environment}")
# A dozen runs of a part of the suite: four minutes where others keep the machine busy.
math(EXPR fabric_environment_timeout_s "4 * ${script_timeout_s}")
set_tests_properties(fabric.environment PROPERTIES TIMEOUT ${fabric_environment_timeout_s})
