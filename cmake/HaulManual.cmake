# The manual pages of section 3, which manual/ makes from the headers with python3: BUILD/manual/man3, target haul_man3.
set(HAUL_MANUAL_DIR)
if(NOT HAUL_MANUAL STREQUAL "OFF")
  find_program(HAUL_PYTHON3 NAMES python3)
  if(NOT HAUL_PYTHON3 AND HAUL_MANUAL STREQUAL "ON")
    message(FATAL_ERROR "The manual pages of the library's functions need python3; install it or set HAUL_MANUAL=OFF.")
  endif()
endif()
if(HAUL_MANUAL STREQUAL "OFF" OR NOT HAUL_PYTHON3)
  return()
endif()

set(HAUL_MANUAL_DIR "${PROJECT_BINARY_DIR}/manual/man3")
file(GLOB_RECURSE manual_sources CONFIGURE_DEPENDS
  "${PROJECT_SOURCE_DIR}/manual/man_pages.py" "${PROJECT_SOURCE_DIR}/manual/header/*.py"
  "${PROJECT_SOURCE_DIR}/manual/man/*.py" "${PROJECT_SOURCE_DIR}/manual/examples/*.c")
add_custom_command(OUTPUT "${PROJECT_BINARY_DIR}/manual/done" VERBATIM
  COMMAND "${CMAKE_COMMAND}" -E rm -rf "${HAUL_MANUAL_DIR}"
  COMMAND "${CMAKE_COMMAND}" -E env PYTHONDONTWRITEBYTECODE=1
    "${HAUL_PYTHON3}" "${PROJECT_SOURCE_DIR}/manual/man_pages.py" --out "${HAUL_MANUAL_DIR}"
  COMMAND "${CMAKE_COMMAND}" -E touch "${PROJECT_BINARY_DIR}/manual/done"
  DEPENDS ${manual_sources} "${PROJECT_SOURCE_DIR}/include/haul/haul.h" "${PROJECT_SOURCE_DIR}/include/haul/atomic.h"
  COMMENT "Manual pages of the library's functions")
add_custom_target(haul_man3 ALL DEPENDS "${PROJECT_BINARY_DIR}/manual/done")
add_dependencies(haul_product haul_man3)
