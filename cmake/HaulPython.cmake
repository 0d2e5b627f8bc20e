# The Python package: python/src on libhaul.so.0, by nanobind. It is built by pyproject.toml's scikit-build-core, which
# sets HAUL_PYTHON, finds Python and says where nanobind is; and by Debian's rules.
if(NOT HAUL_PYTHON)
  return()
endif()
# Python 3.12 and later share one binary: what nanobind needs is in their stable ABI.
set(python_modules Development.Module)
if(DEFINED SKBUILD_SABI_COMPONENT)
  list(APPEND python_modules ${SKBUILD_SABI_COMPONENT})
endif()
find_package(Python 3.9 REQUIRED COMPONENTS Interpreter ${python_modules})
if(NOT nanobind_DIR AND NOT nanobind_ROOT)
  execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
    OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE nanobind_ROOT)
endif()
find_package(nanobind CONFIG REQUIRED)

set(HAUL_PYTHON_DIR "haul" CACHE STRING "Where the package's files are installed, below the prefix")
option(HAUL_PYTHON_BUNDLED "Install libhaul with the Python package, as wheels need it" ON)
file(GLOB_RECURSE python_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/src/*.cpp")
set(python_atomic_sources ${python_sources})
list(FILTER python_atomic_sources INCLUDE REGEX "/src/(atomic|errors)/")
list(FILTER python_sources EXCLUDE REGEX "/src/atomic/")
nanobind_add_module(haul_python STABLE_ABI FREE_THREADED NB_STATIC NOMINSIZE ${python_sources})
nanobind_add_module(haul_python_atomic STABLE_ABI FREE_THREADED NB_STATIC ${python_atomic_sources})
target_link_libraries(haul_python PRIVATE haul::haul)
target_link_libraries(haul_python_atomic PRIVATE haul::atomic)
set_target_properties(haul_python PROPERTIES OUTPUT_NAME _haul)
set_target_properties(haul_python_atomic PROPERTIES OUTPUT_NAME _atomic)
foreach(module haul_python haul_python_atomic)
  target_include_directories(${module} PRIVATE "${PROJECT_SOURCE_DIR}")
  if(HAUL_PYTHON_BUNDLED)
    set_target_properties(${module} PROPERTIES INSTALL_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH ON)
  endif()
  # (Not libgcc: pthread_exit() unwinds by the shared one, whose contexts a second one here would not know; see
  # without_gil.hpp.)
  target_link_options(${module} PRIVATE -static-libstdc++)
  install(TARGETS ${module} LIBRARY DESTINATION "${HAUL_PYTHON_DIR}" COMPONENT python)
endforeach()
add_dependencies(haul_product haul_python haul_python_atomic)

# The package is whole by itself in a wheel, to which scikit-build-core adds what is written in Python; elsewhere libhaul is
# the system's. A wheel holds no links: each library has the name by which the loader knows it, so that a process has one
# libhaul, whoever loads it.
if(HAUL_PYTHON_BUNDLED)
  foreach(library haul haul_atomic)
    install(FILES $<TARGET_FILE:${library}> RENAME $<TARGET_SONAME_FILE_NAME:${library}>
      DESTINATION "${HAUL_PYTHON_DIR}" COMPONENT python)
  endforeach()
else()
  install(DIRECTORY python/haul/ DESTINATION "${HAUL_PYTHON_DIR}" COMPONENT python
    FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "py.typed")
  file(WRITE "${PROJECT_BINARY_DIR}/METADATA"
    "Metadata-Version: 2.1\nName: haul\nVersion: ${PROJECT_VERSION}\nSummary: ${PROJECT_DESCRIPTION}\n")
  install(FILES "${PROJECT_BINARY_DIR}/METADATA" DESTINATION "${HAUL_PYTHON_DIR}-${PROJECT_VERSION}.dist-info"
    COMPONENT python)
endif()
