# haul_service: the node's service as a static library, on the same objects as libhaul.so.0
# (haul_internal); for the command `haul` and the tests.
file(GLOB_RECURSE service_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/service/*.cpp")
if(service_sources)
  add_library(haul_service STATIC ${service_sources})
  haul_unity(haul_service)
  target_link_libraries(haul_service PUBLIC haul_internal)
  target_include_directories(haul_service PUBLIC "${PROJECT_SOURCE_DIR}")
endif()
