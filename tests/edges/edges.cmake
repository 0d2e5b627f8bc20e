# The table functions x situations: its rows are read from the public headers at build time.
find_program(HAUL_PYTHON3 NAMES python3)
if(NOT HAUL_PYTHON3)
  message(STATUS "haul leaves out the test edges.table: it needs python3")
  return()
endif()
set(table_dir "${CMAKE_CURRENT_SOURCE_DIR}/edges/table")
set(table_rows "${CMAKE_CURRENT_BINARY_DIR}/edges_table_rows.cpp")
set(table_headers "${PROJECT_SOURCE_DIR}/include/haul/haul.h" "${PROJECT_SOURCE_DIR}/include/haul/atomic.h")
add_custom_command(OUTPUT "${table_rows}"
  COMMAND "${HAUL_PYTHON3}" "${table_dir}/functions.py" "${table_rows}" ${table_headers}
  DEPENDS "${table_dir}/functions.py" ${table_headers} VERBATIM)
file(GLOB table_sources CONFIGURE_DEPENDS "${table_dir}/*.cpp")
add_executable(edges_table ${table_sources} "${table_rows}")
target_include_directories(edges_table PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}" "${table_dir}")
target_link_libraries(edges_table PRIVATE haul_options haul haul_atomic haul_service Threads::Threads)
set_target_properties(edges_table PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${programs_dir}")
# Under sanitizers, where a call takes up to ten times as long, the situations that are least alike.
set(table_arguments)
if(HAUL_SANITIZE MATCHES "thread")
  set(table_arguments plain closed exit_after handler interrupted)
elseif(HAUL_SANITIZE)
  set(table_arguments plain cancelled closed overwritten key_destructor exit_before exit_after handler
    interrupted stopped)
endif()
add_test(NAME edges.table COMMAND edges_table ${table_arguments})
haul_plain_test(edges.table edges)
set_tests_properties(edges.table PROPERTIES TIMEOUT 1800)
