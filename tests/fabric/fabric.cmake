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
target_link_libraries(haul_fabric_tests PRIVATE haul_options PkgConfig::HAUL_LIBFABRIC Threads::Threads ${CMAKE_DL_LIBS})
target_include_directories(haul_fabric_tests PRIVATE "${PROJECT_SOURCE_DIR}/include")
foreach(program kill soak overlap refuse main_ends)
  add_executable(fabric_${program} "${fabric_dir}/${program}.cpp")
  target_link_libraries(fabric_${program} PRIVATE haul_options)
  set_target_properties(fabric_${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${programs_dir}")
endforeach()
foreach(program kill soak overlap)
  target_sources(fabric_${program} PRIVATE "${fabric_dir}/rank.cpp")
  target_link_libraries(fabric_${program} PRIVATE PkgConfig::HAUL_LIBFABRIC)
endforeach()
target_sources(fabric_main_ends PRIVATE "${fabric_dir}/node.cpp" "${fabric_dir}/transfer.cpp")
target_link_libraries(fabric_main_ends PRIVATE PkgConfig::HAUL_LIBFABRIC GTest::gtest Threads::Threads)

if(NOT TARGET haul_fi)
  target_link_libraries(haul_fabric_tests PRIVATE GTest::gtest GTest::gtest_main)
  return()
endif()
haul_gtest(haul_fabric_tests fabric ENVIRONMENT ${fabric_environment})
haul_add_to(fabric fabric_kill fabric_soak fabric_overlap fabric_refuse fabric_main_ends)
add_test(NAME fabric.kill COMMAND ${run_test} --length --kills 8 20 $<TARGET_FILE:fabric_kill>)
add_test(NAME fabric.soak COMMAND ${run_test} --length --seconds 4 10 $<TARGET_FILE:fabric_soak>)
add_test(NAME fabric.overlap COMMAND ${run_test} --length --rounds 4 24 $<TARGET_FILE:fabric_overlap>)
# The same dangers while a thread of the provider's takes turns with the program.
add_test(NAME fabric.overlap_kill COMMAND ${run_test} --length --kills 4 20 $<TARGET_FILE:fabric_kill>)
add_test(NAME fabric.overlap_soak COMMAND ${run_test} --length --seconds 3 10 $<TARGET_FILE:fabric_soak>)
# ... and where what malloc gives is born shared, so that most messages are copied through mappings.
if(TARGET haul_malloc AND NOT HAUL_SANITIZE)
  set(born env LD_PRELOAD=$<TARGET_FILE:haul_malloc> HAUL_MEMORY_SHARED_FROM_BYTES=16K)
  add_test(NAME fabric.born_kill COMMAND ${run_test} --length --kills 4 20 ${born} $<TARGET_FILE:fabric_kill>)
  add_test(NAME fabric.born_soak COMMAND ${run_test} --length --seconds 3 10 ${born} $<TARGET_FILE:fabric_soak>)
  set_tests_properties(fabric.born_kill fabric.born_soak PROPERTIES LABELS "fabric;long"
    TIMEOUT ${script_timeout_s} SKIP_RETURN_CODE 77 ENVIRONMENT "${fabric_environment}")
  haul_lane(fabric.born_kill)
  haul_lane(fabric.born_soak)
endif()
add_test(NAME fabric.main_ends COMMAND ${run_test} $<TARGET_FILE:fabric_main_ends>)
add_test(NAME fabric.environment COMMAND ${run_test} bash "${fabric_dir}/environment.sh")
set_tests_properties(fabric.kill fabric.soak fabric.main_ends fabric.environment PROPERTIES LABELS fabric
  TIMEOUT ${script_timeout_s} SKIP_RETURN_CODE 77 ENVIRONMENT "${fabric_environment}")
set_tests_properties(fabric.overlap fabric.overlap_kill fabric.overlap_soak PROPERTIES
  LABELS "fabric;long" TIMEOUT ${script_timeout_s} SKIP_RETURN_CODE 77
  ENVIRONMENT "${fabric_environment};HAUL_FABRIC_OVERLAP=on")
# In a guest of QEMU with more CPUs than ranks, where haul's thread is on by itself.
if(NOT HAUL_SANITIZE)
  add_test(NAME fabric.overlap_guest COMMAND ${run_test} python3 "${fabric_dir}/guest/run.py" --build "${PROJECT_BINARY_DIR}")
  set_tests_properties(fabric.overlap_guest PROPERTIES LABELS "fabric;long" TIMEOUT 600 COST 50 SKIP_RETURN_CODE 77
    ENVIRONMENT "PYTHONDONTWRITEBYTECODE=1")
endif()
foreach(test kill soak overlap overlap_kill overlap_soak main_ends environment)
  haul_lane(fabric.${test})
endforeach()
# A dozen runs of a part of the suite: four minutes where others keep the machine busy.
math(EXPR fabric_environment_timeout_s "4 * ${script_timeout_s}")
set_tests_properties(fabric.environment PROPERTIES TIMEOUT ${fabric_environment_timeout_s})
set_tests_properties(fabric.kill fabric.soak PROPERTIES LABELS "fabric;long")
