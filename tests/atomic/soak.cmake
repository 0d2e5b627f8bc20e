# The exactly-once soak (soak.cpp) and the lock soak (lock_soak.cpp), for a while; by hand:
# atomic_soak --operations 10000000, atomic_lock_soak --seconds 600 --seed 7.
# They need what the XDP plug-in needs, and fmt for bench/namespaces.
if(NOT TARGET haul_bpf OR NOT TARGET fmt::fmt)
  return()
endif()
set(atomic_dir "${CMAKE_CURRENT_SOURCE_DIR}/atomic")
set(faults_object "${PROJECT_BINARY_DIR}/tests/faults.bpf.o")
add_custom_command(OUTPUT "${faults_object}" VERBATIM
  COMMAND "${HAUL_BPF_CLANG}" -O2 -g -Wall -Werror -target bpf -mcpu=v3
    -I "/usr/include/${CMAKE_LIBRARY_ARCHITECTURE}" -I "${HAUL_LIBBPF_INCLUDE}" -I "${PROJECT_SOURCE_DIR}"
    -c "${atomic_dir}/faults.bpf.c" -o "${faults_object}"
  DEPENDS "${atomic_dir}/faults.bpf.c" "${atomic_dir}/faults_facts.h"
    "${PROJECT_SOURCE_DIR}/atomic/wire/packet.h"
  COMMENT "BPF program of the bad cable")
add_custom_target(atomic_faults DEPENDS "${faults_object}")

function(haul_soak target)
  add_executable(${target} ${ARGN} "${atomic_dir}/soak_server.cpp" "${atomic_dir}/faults.cpp"
    "${PROJECT_SOURCE_DIR}/bench/remote/hosts/namespaces.cpp")
  add_dependencies(${target} atomic_faults haul_atomic_xdp)
  # What is slow here makes the histories short.
  target_compile_options(${target} PRIVATE -O2)
  target_compile_definitions(${target} PRIVATE "FAULTS_OBJECT=\"${faults_object}\"")
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}" "${HAUL_LIBBPF_INCLUDE}")
  target_link_libraries(${target} PRIVATE
    haul_options haul_atomic "${HAUL_LIBBPF}" fmt::fmt Threads::Threads)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${programs_dir}")
endfunction()

haul_soak(atomic_soak "${atomic_dir}/soak.cpp" "${atomic_dir}/soak_client.cpp"
  "${atomic_dir}/soak_forgetful.cpp" "${atomic_dir}/soak_check.cpp")
# The control serves from the library's own tables, which the shared library does not export. The whole static
# library would bring a second search for plug-ins, from a program whose path leads to none.
target_sources(atomic_soak PRIVATE "${PROJECT_SOURCE_DIR}/atomic/responder/tables.cpp"
  "${PROJECT_SOURCE_DIR}/atomic/link/udp_socket.cpp" "${PROJECT_SOURCE_DIR}/atomic/link/socket_address.cpp"
  "${PROJECT_SOURCE_DIR}/atomic/wire/wire_packet.cpp")
target_link_libraries(atomic_soak PRIVATE haul_base)
haul_soak(atomic_lock_soak "${atomic_dir}/lock_soak.cpp" "${atomic_dir}/lock_referee.cpp"
  "${atomic_dir}/lock_member.cpp" "${atomic_dir}/lock_board.cpp" "${atomic_dir}/lock_check.cpp"
  "${atomic_dir}/lock_star.cpp")

foreach(responder block xdp-skb xdp-native)
  add_test(NAME atomic.soak.${responder} COMMAND ${run_test} --length --operations 100000 500000
    $<TARGET_FILE:atomic_soak> --responder ${responder})
  list(APPEND soak_tests atomic.soak.${responder})
endforeach()
foreach(responder block xdp-skb)
  add_test(NAME atomic.lock_soak.${responder} COMMAND ${run_test} --length --seconds 4 10
    $<TARGET_FILE:atomic_lock_soak> --responder ${responder})
  list(APPEND soak_tests atomic.lock_soak.${responder})
endforeach()
set_tests_properties(${soak_tests} PROPERTIES LABELS "atomic;long")
add_test(NAME atomic.soak.control COMMAND ${run_test} $<TARGET_FILE:atomic_soak> --control)
add_test(NAME atomic.lock_soak.control COMMAND ${run_test} $<TARGET_FILE:atomic_lock_soak> --control --seconds 4)
set_tests_properties(atomic.soak.control atomic.lock_soak.control PROPERTIES LABELS atomic)
set_tests_properties(${soak_tests} atomic.soak.control atomic.lock_soak.control PROPERTIES
  TIMEOUT ${script_timeout_s} SKIP_RETURN_CODE 77 ENVIRONMENT "${script_environment}")
foreach(test ${soak_tests} atomic.soak.control atomic.lock_soak.control)
  haul_lane(${test})
endforeach()
haul_add_to(atomic atomic_soak atomic_lock_soak)
