# Plug-ins of engines on foreign libraries (devices/). HAUL_DMADEV=OFF leaves out libhaul-dmadev.so, which needs DPDK;
# HAUL_DMADEV_MISSING names what it lacks.
set(HAUL_DMADEV_MISSING)
if(NOT HAUL_DMADEV STREQUAL "OFF")
  find_library(HAUL_RTE_EAL rte_eal)
  find_library(HAUL_RTE_DMADEV rte_dmadev)
  find_path(HAUL_DPDK_INCLUDE rte_dmadev.h PATH_SUFFIXES dpdk)
  find_path(HAUL_DPDK_CONFIG_INCLUDE rte_config.h PATH_SUFFIXES dpdk ../${CMAKE_LIBRARY_ARCHITECTURE}/dpdk
    ${CMAKE_LIBRARY_ARCHITECTURE}/dpdk)
  if(NOT HAUL_RTE_EAL OR NOT HAUL_RTE_DMADEV OR NOT HAUL_DPDK_INCLUDE OR NOT HAUL_DPDK_CONFIG_INCLUDE)
    set(HAUL_DMADEV_MISSING libdpdk-dev)
  endif()
endif()

if(NOT HAUL_DMADEV STREQUAL "OFF" AND NOT HAUL_DMADEV_MISSING)
  add_library(haul_dmadev MODULE "${PROJECT_SOURCE_DIR}/devices/dmadev/dmadev.cpp")
  target_link_libraries(haul_dmadev PRIVATE haul_options "${HAUL_RTE_DMADEV}" "${HAUL_RTE_EAL}")
  target_include_directories(haul_dmadev PRIVATE "${PROJECT_SOURCE_DIR}/include" "${source_dir}")
  target_include_directories(haul_dmadev SYSTEM PRIVATE "${HAUL_DPDK_INCLUDE}" "${HAUL_DPDK_CONFIG_INCLUDE}")
  # DPDK's headers want its configuration, and SSE 4.2. (Its dmadev functions were not yet promised in 22.11.)
  target_compile_options(haul_dmadev PRIVATE -include rte_config.h -march=corei7 -DALLOW_EXPERIMENTAL_API
    -fvisibility=hidden -fvisibility-inlines-hidden -fno-exceptions -fno-rtti)
  set_target_properties(haul_dmadev PROPERTIES OUTPUT_NAME haul-dmadev PREFIX lib LINKER_LANGUAGE CXX)
  target_link_options(haul_dmadev PRIVATE -Wl,-z,nodelete -Wl,-z,now -Wl,-z,relro -Wl,--as-needed
    -Wl,--exclude-libs,ALL)
  if(NOT HAUL_SANITIZE)
    target_link_options(haul_dmadev PRIVATE -Wl,--no-undefined -static-libstdc++ -static-libgcc)
  endif()
endif()
