# The libfabric provider libhaul-fi.so: fabric/ on the shared libhaul.so.0, which it finds beside
# itself ($ORIGIN). haul_fabric is the same as a static library, for the tests.
# HAUL_FABRIC_MISSING names the Debian packages it lacks.
set(HAUL_FABRIC_MISSING)
set(fabric_include)
if(NOT HAUL_FABRIC STREQUAL "OFF")
  find_path(fabric_include NAMES rdma/providers/fi_prov.h NO_CACHE)
  if(NOT fabric_include)
    set(HAUL_FABRIC_MISSING libfabric-dev)
    if(HAUL_FABRIC STREQUAL "ON")
      message(FATAL_ERROR "The provider needs libfabric-dev; install it or set HAUL_FABRIC=OFF.")
    endif()
  endif()
endif()

file(GLOB_RECURSE fabric_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/fabric/*.cpp")
if(NOT HAUL_FABRIC STREQUAL "OFF" AND fabric_include AND fabric_sources)
  add_library(haul_fabric_objects OBJECT ${fabric_sources})
  haul_unity(haul_fabric_objects)
  target_link_libraries(haul_fabric_objects PRIVATE haul_options)
  target_include_directories(haul_fabric_objects PRIVATE
    "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include" "${source_dir}" "${fabric_include}")
  target_compile_options(haul_fabric_objects PRIVATE -fvisibility=hidden
    -fvisibility-inlines-hidden -fno-exceptions -fno-rtti)

  add_library(haul_fi MODULE $<TARGET_OBJECTS:haul_fabric_objects>)
  target_link_libraries(haul_fi PRIVATE haul_options haul_base haul Threads::Threads)
  set_target_properties(haul_fi PROPERTIES OUTPUT_NAME haul-fi PREFIX lib LINKER_LANGUAGE CXX
    BUILD_RPATH "$ORIGIN" INSTALL_RPATH "${haul_plugin_rpath}"
    LINK_DEPENDS "${PROJECT_SOURCE_DIR}/fabric/fabric.map")
  target_link_options(haul_fi PRIVATE "-Wl,--version-script=${PROJECT_SOURCE_DIR}/fabric/fabric.map"
    -Wl,-z,nodelete -Wl,-z,now -Wl,-z,relro -Wl,--as-needed)
  if(NOT HAUL_SANITIZE)
    target_link_options(haul_fi PRIVATE -Wl,--no-undefined -static-libstdc++ -static-libgcc)
  endif()
  # Preloaded into MPI programs; it finds libhaul.so.0 as the provider does.
  add_library(haul_mpi MODULE preload/mpi_memory.cpp preload/mpi_window.cpp)
  target_link_libraries(haul_mpi PRIVATE haul_options haul ${CMAKE_DL_LIBS})
  target_include_directories(haul_mpi PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include" "${source_dir}")
  target_compile_options(haul_mpi PRIVATE -fvisibility=hidden -fno-exceptions -fno-rtti)
  set_target_properties(haul_mpi PROPERTIES OUTPUT_NAME haul-mpi PREFIX lib
    BUILD_RPATH "$ORIGIN" INSTALL_RPATH "${haul_plugin_rpath}")
  target_link_options(haul_mpi PRIVATE -Wl,-z,now -Wl,-z,relro)

  # malloc() of MPI programs, large allocations from the arena (`haul run --mpi --memory=shared`).
  file(GLOB born_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/preload/born/*.cpp")
  add_library(haul_malloc MODULE ${born_sources})
  haul_unity(haul_malloc APART "/(heap|pages)\\.cpp$")
  target_link_libraries(haul_malloc PRIVATE haul_options haul_base haul ${CMAKE_DL_LIBS})
  target_include_directories(haul_malloc PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include" "${source_dir}")
  # What replaces malloc must not be taken for a call of it.
  target_compile_options(haul_malloc PRIVATE -fvisibility=hidden -fvisibility-inlines-hidden -fno-exceptions -fno-rtti
    -fno-builtin)
  set_target_properties(haul_malloc PROPERTIES OUTPUT_NAME haul-malloc PREFIX lib LINKER_LANGUAGE CXX
    BUILD_RPATH "$ORIGIN" INSTALL_RPATH "${haul_plugin_rpath}")
  target_link_options(haul_malloc PRIVATE -Wl,-z,now -Wl,-z,relro -Wl,-z,nodelete -Wl,--as-needed -Wl,--exclude-libs,ALL)
  if(NOT HAUL_SANITIZE)
    target_link_options(haul_malloc PRIVATE -Wl,--no-undefined -static-libstdc++ -static-libgcc)
  endif()

  add_library(haul_fabric STATIC $<TARGET_OBJECTS:haul_fabric_objects>)
  target_link_libraries(haul_fabric PUBLIC haul_options haul_internal Threads::Threads ${CMAKE_DL_LIBS})
  target_include_directories(haul_fabric PUBLIC "${PROJECT_SOURCE_DIR}" "${fabric_include}")
  set_target_properties(haul_fabric PROPERTIES LINKER_LANGUAGE CXX)
endif()
