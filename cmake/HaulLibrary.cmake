# libhaul.so.0, and the same objects as static libraries with hidden symbols:
#   haul           the shared library                               programs, e2e tests
#   haul_internal  all of src/                                      unit and conformance tests
#   haul_base      src/base and src/copy                            cli/ and bench/
set(source_dir "${PROJECT_SOURCE_DIR}/src")
function(haul_room_sources result)
  set(sources)
  foreach(room ${ARGN})
    file(GLOB_RECURSE found CONFIGURE_DEPENDS "${source_dir}/${room}/*.cpp")
    list(APPEND sources ${found})
  endforeach()
  set(${result} ${sources} PARENT_SCOPE)
endfunction()
haul_room_sources(base_sources base copy)
haul_room_sources(upper_sources completion memory plan request engine gate execution client mover tune api)
haul_room_sources(copy_sources copy)

# The kernels are memcpy and memset: the compiler must not turn their loops into calls of those.
set(kernel_options -fno-builtin)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND kernel_options -fno-tree-loop-distribute-patterns)
endif()
set_source_files_properties(${copy_sources} PROPERTIES COMPILE_OPTIONS "${kernel_options}")
# The loops of a level are compiled for its instructions, which run where the CPU has them.
set_source_files_properties("${source_dir}/copy/kernels_avx2.cpp" PROPERTIES
  COMPILE_OPTIONS "${kernel_options};-mavx2")
set_source_files_properties("${source_dir}/copy/kernels_avx512.cpp" PROPERTIES
  COMPILE_OPTIONS "${kernel_options};-mavx512f;-mavx512vl;-mavx512bw")

# Not merged with others (HAUL_UNITY): these have names of their own that others use as well, or flags of their own. A
# compiler that says "redefinition" there wants one more. api/ is apart because a test that links the static library as
# well, for something merged with it, would get haul's functions from there, and with them a second haul; last_error.cpp
# because Clang calls what it sees defined in the same file and never another library's.
set(apart_sources "/copy/|/api/|/(last_error|cma|cpu|fault|procmem|uffd|uring)\\.cpp$")

foreach(part base upper)
  if(${part}_sources)
    add_library(haul_${part}_objects OBJECT ${${part}_sources})
    target_link_libraries(haul_${part}_objects PRIVATE haul_options)
    target_include_directories(haul_${part}_objects
      PRIVATE "${PROJECT_SOURCE_DIR}/include" "${source_dir}")
    # initial-exec: one load for a thread's state, and no __tls_get_addr from ld.so.
    target_compile_options(haul_${part}_objects PRIVATE -fvisibility=hidden
      -fvisibility-inlines-hidden -fno-exceptions -fno-rtti -ftls-model=initial-exec)
    haul_unity(haul_${part}_objects APART "${apart_sources}")
    list(APPEND all_objects $<TARGET_OBJECTS:haul_${part}_objects>)
  endif()
endforeach()

add_library(haul SHARED ${all_objects})
add_library(haul::haul ALIAS haul)
target_link_libraries(haul PRIVATE haul_options)
target_include_directories(haul INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(haul PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINKER_LANGUAGE CXX
  LINK_DEPENDS "${source_dir}/haul.map" SKIP_BUILD_RPATH ON)
target_link_options(haul PRIVATE "-Wl,--version-script=${source_dir}/haul.map"
  -Wl,-z,nodelete -Wl,-z,now -Wl,-z,relro -Wl,--as-needed)
if(NOT HAUL_SANITIZE)
  # A sanitizer's runtime lies in the program, so there symbols stay undefined until load.
  target_link_options(haul PRIVATE -Wl,--no-undefined -static-libstdc++ -static-libgcc)
endif()

add_library(haul_internal STATIC ${all_objects})
target_link_libraries(haul_internal PUBLIC haul_options Threads::Threads)
target_include_directories(haul_internal PUBLIC "${PROJECT_SOURCE_DIR}/include" "${source_dir}")

if(base_sources)
  add_library(haul_base STATIC $<TARGET_OBJECTS:haul_base_objects>)
  target_link_libraries(haul_base PUBLIC haul_options Threads::Threads)
  target_include_directories(haul_base PUBLIC "${PROJECT_SOURCE_DIR}/include" "${source_dir}")
endif()
foreach(target haul_internal haul_base haul)
  if(TARGET ${target})
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  endif()
endforeach()
