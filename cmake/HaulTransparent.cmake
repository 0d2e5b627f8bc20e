# libhaul-mem.so: memcpy() and its relatives of unmodified programs (`haul run --transparent`), on libhaul.so.0.
file(GLOB mem_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/preload/mem/*.cpp"
  "${PROJECT_SOURCE_DIR}/preload/defer/*.cpp" "${PROJECT_SOURCE_DIR}/preload/protect/*.cpp")
add_library(haul_mem MODULE ${mem_sources})
haul_unity(haul_mem APART "/defer/|/mem/calls")
target_link_libraries(haul_mem PRIVATE haul_options haul_base haul ${CMAKE_DL_LIBS})
target_include_directories(haul_mem PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include" "${source_dir}")
# What replaces memcpy must not be compiled into calls of it.
target_compile_options(haul_mem PRIVATE -fvisibility=hidden -fvisibility-inlines-hidden -fno-exceptions -fno-rtti
  -ftls-model=initial-exec -fno-builtin -fno-plt)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(haul_mem PRIVATE -fno-tree-loop-distribute-patterns)
endif()
set_target_properties(haul_mem PROPERTIES OUTPUT_NAME haul-mem PREFIX lib LINKER_LANGUAGE CXX
  BUILD_RPATH "$ORIGIN" INSTALL_RPATH "${haul_plugin_rpath}")
target_link_options(haul_mem PRIVATE -Wl,-z,now -Wl,-z,relro -Wl,-z,nodelete -Wl,--as-needed -Wl,--exclude-libs,ALL)
if(NOT HAUL_SANITIZE)
  target_link_options(haul_mem PRIVATE -Wl,--no-undefined -static-libstdc++ -static-libgcc)
endif()
