# libhaul-mem.so under programs that do not know of it: each runs itself again with the library preloaded
# (under_preload.hpp). Not under sanitizers, whose runtime must come first.
if(HAUL_SANITIZE OR NOT TARGET haul_mem)
  return()
endif()
set(transparent_dir "${CMAKE_CURRENT_SOURCE_DIR}/transparent")

# haul_transparent(TARGET SOURCE...): a program that includes "transparent/under_preload.hpp". It is not linked to haul.
function(haul_transparent target)
  add_executable(${target} ${ARGN})
  target_compile_definitions(${target} PRIVATE "HAUL_MEM_LIBRARY=\"$<TARGET_FILE:haul_mem>\"")
  target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${target} PRIVATE haul_options Threads::Threads ${CMAKE_DL_LIBS})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${programs_dir}")
  add_dependencies(${target} haul_mem)
  haul_add_to(transparent ${target})
endfunction()

# Its loops are the model, so they must stay loops; and they are most of its time.
haul_transparent(transparent_memory_model "${transparent_dir}/memory_model.cpp")
target_compile_options(transparent_memory_model PRIVATE -O2 -fno-builtin)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(transparent_memory_model PRIVATE -ftree-vectorize -fno-tree-loop-distribute-patterns)
endif()
foreach(plan auto libc caller together deferred profile protected)
  add_test(NAME transparent.memory_model.${plan} COMMAND ${run_test} --length --seconds 4 15
    $<TARGET_FILE:transparent_memory_model> --plan ${plan})
  set_tests_properties(transparent.memory_model.${plan} PROPERTIES LABELS "transparent;long"
    TIMEOUT ${script_timeout_s})
  haul_lane(transparent.memory_model.${plan})
endforeach()

# For tests/e2e/run_transparent.sh.
haul_transparent(transparent_copies "${transparent_dir}/copies.c")
haul_add_to(e2e transparent_copies)

# (Compiled once for all, and each program is of one file, so that they share what is read once of GoogleTest.)
add_library(transparent_main STATIC "${transparent_dir}/main.cpp")
target_link_libraries(transparent_main PRIVATE haul_options GTest::gtest)
target_compile_definitions(transparent_main PRIVATE "HAUL_MEM_LIBRARY=\"$<TARGET_FILE:haul_mem>\"")
target_include_directories(transparent_main PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}")
file(GLOB transparent_tests CONFIGURE_DEPENDS "${transparent_dir}/*_test.cpp")
foreach(source ${transparent_tests})
  get_filename_component(name "${source}" NAME_WE)
  haul_transparent(transparent_${name} "${source}")
  target_link_libraries(transparent_${name} PRIVATE transparent_main)
  haul_gtest(transparent_${name} transparent NAME ${name})
endforeach()

# Objects that copy before main(), and while the loader's lock is held. The resolver calls memcpy() when nothing is
# bound yet, so it needs lazy binding.
add_library(transparent_early SHARED "${transparent_dir}/early.cpp")
target_link_options(transparent_early PRIVATE -Wl,-z,lazy)
add_library(transparent_slow_start MODULE "${transparent_dir}/slow_start.cpp")
target_link_libraries(transparent_slow_start PRIVATE Threads::Threads)
foreach(object transparent_early transparent_slow_start)
  target_compile_options(${object} PRIVATE -fno-builtin)
  target_include_directories(${object} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
  target_link_libraries(${object} PRIVATE haul_options)
  set_target_properties(${object} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${programs_dir}")
endforeach()
target_link_libraries(transparent_loader_test PRIVATE transparent_early)
target_link_libraries(transparent_devices_test PRIVATE haul)  # which the preloaded library loads, too
target_compile_definitions(transparent_loader_test PRIVATE
  "HAUL_TEST_SLOW_START=\"$<TARGET_FILE:transparent_slow_start>\"")
add_dependencies(transparent_loader_test transparent_slow_start)

add_test(NAME transparent.as_nobody COMMAND ${run_test} bash "${CMAKE_CURRENT_SOURCE_DIR}/e2e/as_nobody.sh" transparent)
haul_plain_test(transparent.as_nobody transparent)
