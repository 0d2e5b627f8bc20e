# libhaul-malloc.so under a program that does not know of it (`haul run --mpi --memory=shared`). Not under sanitizers,
# whose runtime replaces malloc itself and must come first.
if(HAUL_SANITIZE OR NOT TARGET haul_malloc)
  return()
endif()
file(GLOB born_tests CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/born/*.cpp")
add_executable(haul_born_tests ${born_tests})
target_compile_definitions(haul_born_tests PRIVATE "HAUL_MALLOC_LIBRARY=\"$<TARGET_FILE:haul_malloc>\"")
target_link_libraries(haul_born_tests PRIVATE haul_options Threads::Threads ${CMAKE_DL_LIBS})
# -fno-builtin: what is malloc() itself must not be taken for a call of it.
add_executable(haul_born_own_malloc born/own_malloc.c)
target_compile_options(haul_born_own_malloc PRIVATE -fno-builtin)
target_compile_definitions(haul_born_tests PRIVATE "HAUL_OWN_MALLOC=\"$<TARGET_FILE:haul_born_own_malloc>\"")
add_dependencies(haul_born_tests haul_malloc haul_born_own_malloc)
haul_gtest(haul_born_tests born)
