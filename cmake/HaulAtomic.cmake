# libhaul-atomic.so.0: remote atomics, atomic/ on base/, needing libc alone; and, where clang and
# libbpf are here, its plug-in libhaul-atomic-xdp.so; where libfabric is, libhaul-atomic-fabric.so.
# haul_atomic_internal is the former as a static library, for the tests. HAUL_XDP_MISSING names the
# Debian packages that the XDP plug-in lacks; HAUL_FABRIC=OFF leaves out the fabric's, too.
file(GLOB_RECURSE atomic_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/atomic/*.cpp")
list(FILTER atomic_sources EXCLUDE REGEX "/atomic/(xdp/|fabric/|operators\\.cpp)")
set(atomic_options -fvisibility=hidden -fvisibility-inlines-hidden -fno-exceptions -fno-rtti)

add_library(haul_atomic_objects OBJECT ${atomic_sources})
haul_unity(haul_atomic_objects)
target_link_libraries(haul_atomic_objects PRIVATE haul_options)
target_include_directories(haul_atomic_objects PRIVATE
  "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include" "${source_dir}")
target_compile_options(haul_atomic_objects PRIVATE ${atomic_options})

# A sanitizer has operators of its own.
set(atomic_operators)
if(NOT HAUL_SANITIZE)
  set(atomic_operators "${PROJECT_SOURCE_DIR}/atomic/operators.cpp")
endif()
add_library(haul_atomic SHARED $<TARGET_OBJECTS:haul_atomic_objects> ${atomic_operators})
add_library(haul::atomic ALIAS haul_atomic)
target_link_libraries(haul_atomic PRIVATE haul_options haul_base Threads::Threads ${CMAKE_DL_LIBS})
target_include_directories(haul_atomic INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(haul_atomic PROPERTIES OUTPUT_NAME haul-atomic EXPORT_NAME atomic
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINKER_LANGUAGE CXX
  LINK_DEPENDS "${PROJECT_SOURCE_DIR}/atomic/atomic.map" SKIP_BUILD_RPATH ON)
target_compile_options(haul_atomic PRIVATE ${atomic_options})
target_link_options(haul_atomic PRIVATE
  "-Wl,--version-script=${PROJECT_SOURCE_DIR}/atomic/atomic.map"
  -Wl,-z,nodelete -Wl,-z,now -Wl,-z,relro -Wl,--as-needed)
if(NOT HAUL_SANITIZE)
  target_link_options(haul_atomic PRIVATE -Wl,--no-undefined -static-libstdc++ -static-libgcc)
endif()

add_library(haul_atomic_internal STATIC $<TARGET_OBJECTS:haul_atomic_objects>)
target_link_libraries(haul_atomic_internal PUBLIC haul_options haul_base Threads::Threads ${CMAKE_DL_LIBS})
target_include_directories(haul_atomic_internal PUBLIC "${PROJECT_SOURCE_DIR}")
set_target_properties(haul_atomic_internal PROPERTIES LINKER_LANGUAGE CXX)

if(NOT HAUL_FABRIC STREQUAL "OFF")
  find_library(HAUL_LIBFABRIC fabric)
  find_path(HAUL_LIBFABRIC_INCLUDE rdma/fi_atomic.h)
endif()
if(NOT HAUL_FABRIC STREQUAL "OFF" AND HAUL_LIBFABRIC AND HAUL_LIBFABRIC_INCLUDE)
  file(GLOB atomic_fabric_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/atomic/fabric/*.cpp")
  # Sessions and connections are the library's own, compiled in once more.
  add_library(haul_atomic_fabric MODULE ${atomic_fabric_sources}
    "${PROJECT_SOURCE_DIR}/atomic/client/carrier.cpp" "${PROJECT_SOURCE_DIR}/atomic/client/session.cpp"
    "${PROJECT_SOURCE_DIR}/atomic/wire/wire_packet.cpp" "${PROJECT_SOURCE_DIR}/atomic/link/socket_address.cpp"
    "${PROJECT_SOURCE_DIR}/atomic/link/fabric_host.cpp"
    "${PROJECT_SOURCE_DIR}/atomic/responder/responder.cpp")
  haul_unity(haul_atomic_fabric APART "/fabric_endpoint")
  target_link_libraries(haul_atomic_fabric PRIVATE haul_options haul_base Threads::Threads
    "${HAUL_LIBFABRIC}")
  target_include_directories(haul_atomic_fabric PRIVATE "${PROJECT_SOURCE_DIR}"
    "${PROJECT_SOURCE_DIR}/include" "${source_dir}" "${HAUL_LIBFABRIC_INCLUDE}")
  target_compile_options(haul_atomic_fabric PRIVATE ${atomic_options})
  set_target_properties(haul_atomic_fabric PROPERTIES OUTPUT_NAME haul-atomic-fabric PREFIX lib
    LINKER_LANGUAGE CXX)
  target_link_options(haul_atomic_fabric PRIVATE -Wl,-z,nodelete -Wl,-z,now -Wl,-z,relro
    -Wl,--as-needed -Wl,--exclude-libs,ALL)
  if(NOT HAUL_SANITIZE)
    target_link_options(haul_atomic_fabric PRIVATE
      -Wl,--no-undefined -static-libstdc++ -static-libgcc)
  endif()
endif()

set(HAUL_XDP_MISSING)
if(NOT HAUL_XDP STREQUAL "OFF")
  find_program(HAUL_BPF_CLANG NAMES clang clang-14 clang-15 clang-16 clang-17 clang-18 clang-19)
  find_library(HAUL_LIBBPF bpf)
  find_path(HAUL_LIBBPF_INCLUDE bpf/libbpf.h)
  if(NOT HAUL_BPF_CLANG)
    list(APPEND HAUL_XDP_MISSING clang-14)
  endif()
  if(NOT HAUL_LIBBPF OR NOT HAUL_LIBBPF_INCLUDE)
    list(APPEND HAUL_XDP_MISSING libbpf-dev)
  endif()
  if(HAUL_XDP_MISSING AND HAUL_XDP STREQUAL "ON")
    list(JOIN HAUL_XDP_MISSING " " names)
    message(FATAL_ERROR "The XDP plug-in needs ${names}; install them or set HAUL_XDP=OFF.")
  endif()
endif()
if(HAUL_XDP STREQUAL "OFF" OR HAUL_XDP_MISSING)
  return()
endif()

# -mcpu=v3: BPF atomics that fetch. <asm/types.h> lies in the host's own directory.
set(bpf_object "${PROJECT_BINARY_DIR}/atomic.bpf.o")
file(GLOB wire_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/atomic/wire/*.h")
add_custom_command(OUTPUT "${bpf_object}" VERBATIM
  COMMAND "${HAUL_BPF_CLANG}" -O2 -g -Wall -Werror -target bpf -mcpu=v3
    -I "/usr/include/${CMAKE_LIBRARY_ARCHITECTURE}" -I "${HAUL_LIBBPF_INCLUDE}" -I "${PROJECT_SOURCE_DIR}"
    "-fdebug-prefix-map=${PROJECT_SOURCE_DIR}=." "-ffile-prefix-map=${PROJECT_SOURCE_DIR}=."
    -c "${PROJECT_SOURCE_DIR}/atomic/bpf/atomic.bpf.c" -o "${bpf_object}"
  DEPENDS "${PROJECT_SOURCE_DIR}/atomic/bpf/atomic.bpf.c" ${wire_headers}
  COMMENT "BPF program of remote atomics")
add_custom_target(haul_bpf DEPENDS "${bpf_object}")
file(GLOB xdp_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/atomic/xdp/*.cpp")
set_source_files_properties("${PROJECT_SOURCE_DIR}/atomic/xdp/object.cpp" PROPERTIES
  OBJECT_DEPENDS "${bpf_object}" COMPILE_DEFINITIONS "HAUL_BPF_OBJECT=\"${bpf_object}\"")
add_library(haul_atomic_xdp MODULE ${xdp_sources} ${atomic_operators}
  "${PROJECT_SOURCE_DIR}/atomic/link/kernel_object.cpp")
haul_unity(haul_atomic_xdp)
add_dependencies(haul_atomic_xdp haul_bpf)
target_link_libraries(haul_atomic_xdp PRIVATE haul_options haul_base "${HAUL_LIBBPF}")
target_include_directories(haul_atomic_xdp PRIVATE
  "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include" "${HAUL_LIBBPF_INCLUDE}")
target_compile_options(haul_atomic_xdp PRIVATE ${atomic_options})
set_target_properties(haul_atomic_xdp PROPERTIES OUTPUT_NAME haul-atomic-xdp PREFIX lib LINKER_LANGUAGE CXX)
target_link_options(haul_atomic_xdp PRIVATE -Wl,-z,nodelete -Wl,-z,now -Wl,-z,relro -Wl,--as-needed
  -Wl,--exclude-libs,ALL)
if(NOT HAUL_SANITIZE)
  target_link_options(haul_atomic_xdp PRIVATE -Wl,--no-undefined -static-libstdc++ -static-libgcc)
endif()
