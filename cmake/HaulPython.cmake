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

set(python_package_dir "haul" CACHE STRING "Where the package's files are installed, below the prefix")
file(GLOB_RECURSE python_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/src/*.cpp")
nanobind_add_module(haul_python STABLE_ABI FREE_THREADED NB_STATIC LTO ${python_sources})
target_link_libraries(haul_python PRIVATE haul::haul)
target_include_directories(haul_python PRIVATE "${PROJECT_SOURCE_DIR}/python/src")
set_target_properties(haul_python PROPERTIES OUTPUT_NAME _haul INSTALL_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH ON)
install(TARGETS haul_python LIBRARY DESTINATION "${python_package_dir}" COMPONENT python)
# A wheel holds no links: the file has the name by which the loader knows it. One process then has one libhaul.
install(FILES $<TARGET_FILE:haul> RENAME libhaul.so.${PROJECT_VERSION_MAJOR}
  DESTINATION "${python_package_dir}" COMPONENT python)
