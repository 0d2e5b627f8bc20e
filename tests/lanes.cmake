# What runs beside what. Tests share a node: its cores, the lease of a mover's core, and what every process sees of the
# others. So one test of each lane runs at a time, and beside the two lanes whatever is FREE. A lane is a RESOURCE_LOCK:
#   node    all tests that are not named here. They may take the lease, measure the machine (one process of a user
#           does at a time), send messages, of which others see sockets (@haul-fabric) and files (/dev/shm), and look
#           for these.
#   aside   tests that do none of that: their processes have movers without the lease (HAUL_MOVER_LEASE=off,
#           always_mover(), Service::use()), services at sockets of their own, or neither.
# Alone, with both locks:
set(tests_alone
  edges.table                                 # many processes at once, which others would wait for
  edges.busy_machine_test                     # has threads that never rest
  e2e.alloc_test e2e.atomic_bench             # count everybody's files; everybody's network namespaces
  e2e.as_nobody edges.as_nobody)              # run tests of both lanes
# Alone and last, when what is FREE has ended: on a busy machine some of it sees less (figures are not kept, nobody has
# to wait), haul_tune() says something else, a thread that is kept from its CPU between its look at a descriptor and its
# call finds the program's file there, and thousands of threads that wait for each other take five times as long.
set(tests_last e2e.demo_test edges.atomic_descriptors_test edges.no_malloc_test edges.room_test edges.scheduling_test
  edges.stuck_copy_test)
set(tests_aside
  born
  e2e.atomic_cli e2e.channel_test e2e.cli_test e2e.clone_test e2e.completion_test e2e.cuda_fault_test e2e.cuda_gpu_test e2e.cuda_memory_test
  e2e.cuda_setup_test e2e.cuda_test e2e.dlopen e2e.dsa_channels_test e2e.dsa_setup_test e2e.dsa_test
  e2e.dsa_verify_test
  e2e.fork_test e2e.handler_test e2e.hpp_test e2e.life_test e2e.metrics_test e2e.serve_manners_test
  e2e.no_install e2e.order_test e2e.peer_test e2e.run_transparent e2e.rust e2e.serve_test e2e.service_copy_test
  e2e.service_corner_test e2e.service_fault_test e2e.service_places_test e2e.signal_test e2e.start_test
  edges.atfork_test edges.atomic_cancel_test edges.atomic_ends_test edges.daemon_test edges.exec_test
  edges.fork_amid_test edges.late_destructors_test edges.limits_test edges.longjmp_test edges.opened_signals_test
  edges.patched_code_test edges.personality_test edges.remade_movers_test edges.rights_test edges.stop_test
  edges.stopped_service_test edges.table_grows edges.users_test stress unit.atomic)
set(labels_aside "^transparent\\.")

# Programs that wait for most of their time, for the five seconds that a stopped service is given and the like, and
# whose cases are processes of their own: four parts of their cases run at once (run_test.sh --at-once).
set(tests_that_wait e2e.service_corner_test e2e.service_fault_test edges.atomic_ends_test edges.main_thread_ends_test
  edges.remade_movers_test edges.stopped_service_test)

# Seconds of the longest tests: these begin first, so that both lanes end at about the same time.
set(test_seconds
  fabric.environment=35 e2e.bench_mpi=25 fabric=20 e2e.install=12 e2e.run_mpi=12 edges.descriptors_test=12 stress=10
  unit.fabric=10 atomic=9 service=8 unit=8 e2e.hostile_test=6 conformance=5 edges.main_thread_ends_test=5
  transparent.deferred_huge_test=18 e2e.dsa_test=20 e2e.rust=30 e2e.dsa_verify_test=35 e2e.cuda_gpu_test=40 e2e.cuda_test=30 e2e.channel_test=20
  e2e.cuda_fault_test=15 e2e.cuda_memory_test=15
  e2e.cli_test=17 e2e.metrics_test=17 e2e.serve_manners_test=12 e2e.completion_test=12 transparent.deferred_test=15 e2e.serve_test=14 e2e.atomic_cli=11
  e2e.signal_test=11 transparent.protected_test=11 transparent.deferred_fill_test=10 transparent.filters_test=10
  e2e.life_test=7 e2e.service_fault_test=7 edges.fork_amid_test=6 edges.atfork_test=6 e2e.service_corner_test=5
  edges.stopped_service_test=5 edges.atomic_ends_test=5)

# haul_lane(TEST): what it runs beside, and when it begins.
function(haul_lane test)
  set(cost 1)
  if("${test_seconds}" MATCHES "(^|;)${test}=([0-9]+)")
    set(cost ${CMAKE_MATCH_2})
  endif()
  set(locks node)
  if(test IN_LIST tests_aside OR test MATCHES "${labels_aside}")
    set(locks aside)
  elseif(test IN_LIST tests_alone)
    set(locks node aside)
    set(cost 90)
  elseif(test IN_LIST tests_last)
    set(locks node aside)
    set(cost -1)
  endif()
  set_tests_properties(${test} PROPERTIES RESOURCE_LOCK "${locks}" COST ${cost})
endfunction()
