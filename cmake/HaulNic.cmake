# The plug-in of the engine nic (devices/nic/), libhaul-nic.so, which needs libbpf, and clang for its BPF program. HAUL_NIC=OFF
# leaves it out; HAUL_NIC_MISSING names what it lacks. Behind HaulAtomic, which looks for the same.
set(HAUL_NIC_MISSING)
if(NOT HAUL_NIC STREQUAL "OFF")
  find_program(HAUL_BPF_CLANG NAMES clang clang-14 clang-15 clang-16 clang-17 clang-18 clang-19)
  find_library(HAUL_LIBBPF bpf)
  find_path(HAUL_LIBBPF_INCLUDE bpf/libbpf.h)
  if(NOT HAUL_BPF_CLANG)
    list(APPEND HAUL_NIC_MISSING clang-14)
  endif()
  if(NOT HAUL_LIBBPF OR NOT HAUL_LIBBPF_INCLUDE)
    list(APPEND HAUL_NIC_MISSING libbpf-dev)
  endif()
endif()
if(HAUL_NIC STREQUAL "OFF" OR HAUL_NIC_MISSING)
  return()
endif()

set(nic_dir "${PROJECT_SOURCE_DIR}/devices/nic")
set(nic_bpf_object "${PROJECT_BINARY_DIR}/nic.bpf.o")
add_custom_command(OUTPUT "${nic_bpf_object}" VERBATIM
  COMMAND "${HAUL_BPF_CLANG}" -O2 -g -Wall -Werror -target bpf -mcpu=v3
    -I "/usr/include/${CMAKE_LIBRARY_ARCHITECTURE}" -I "${HAUL_LIBBPF_INCLUDE}" -I "${PROJECT_SOURCE_DIR}"
    "-fdebug-prefix-map=${PROJECT_SOURCE_DIR}=." "-ffile-prefix-map=${PROJECT_SOURCE_DIR}=."
    -c "${nic_dir}/nic.bpf.c" -o "${nic_bpf_object}"
  DEPENDS "${nic_dir}/nic.bpf.c" "${nic_dir}/frame.h"
  COMMENT "BPF program of the engine nic")
add_custom_target(haul_nic_bpf DEPENDS "${nic_bpf_object}")
file(GLOB nic_sources CONFIGURE_DEPENDS "${nic_dir}/*.cpp" "${nic_dir}/card/*.cpp")
set_source_files_properties("${nic_dir}/program.cpp" PROPERTIES
  OBJECT_DEPENDS "${nic_bpf_object}" COMPILE_DEFINITIONS "HAUL_NIC_BPF_OBJECT=\"${nic_bpf_object}\"")
add_library(haul_nic MODULE ${nic_sources})
haul_unity(haul_nic APART "/(lane|vfio)\\.cpp$")
add_dependencies(haul_nic haul_nic_bpf)
target_link_libraries(haul_nic PRIVATE haul_options "${HAUL_LIBBPF}" Threads::Threads)
target_include_directories(haul_nic PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include" "${source_dir}")
target_include_directories(haul_nic SYSTEM PRIVATE "${HAUL_LIBBPF_INCLUDE}")
target_compile_options(haul_nic PRIVATE -fvisibility=hidden -fvisibility-inlines-hidden -fno-exceptions -fno-rtti)
set_target_properties(haul_nic PROPERTIES OUTPUT_NAME haul-nic PREFIX lib LINKER_LANGUAGE CXX)
target_link_options(haul_nic PRIVATE -Wl,-z,nodelete -Wl,-z,now -Wl,-z,relro -Wl,--as-needed -Wl,--exclude-libs,ALL)
if(NOT HAUL_SANITIZE)
  target_link_options(haul_nic PRIVATE -Wl,--no-undefined -static-libstdc++ -static-libgcc)
endif()
