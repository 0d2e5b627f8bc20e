# Where libraries are installed that programs open by name (plug-ins of engines and of remote atomics) or preload: beside
# libhaul.so.0. A distribution whose policy keeps such files out of its libraries' directory names another one, which
# haul then looks in as well. The path is compiled in, so CMAKE_INSTALL_PREFIX must be the final one.
set(HAUL_PLUGIN_DIR "${CMAKE_INSTALL_LIBDIR}" CACHE STRING "Where plug-ins are installed, from the prefix; by default beside libhaul.so.0")
set(haul_plugin_rpath "$ORIGIN")
if(NOT HAUL_PLUGIN_DIR STREQUAL CMAKE_INSTALL_LIBDIR)
  file(RELATIVE_PATH libraries "/prefix/${HAUL_PLUGIN_DIR}" "/prefix/${CMAKE_INSTALL_LIBDIR}")
  string(REGEX REPLACE "/$" "" libraries "${libraries}")
  set(haul_plugin_rpath "$ORIGIN/${libraries}")
  set_source_files_properties("${PROJECT_SOURCE_DIR}/src/base/os/plugin.cpp" PROPERTIES
    COMPILE_DEFINITIONS "HAUL_PLUGIN_DIR=\"${CMAKE_INSTALL_PREFIX}/${HAUL_PLUGIN_DIR}\"")
endif()
