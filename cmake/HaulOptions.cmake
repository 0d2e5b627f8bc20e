# Language, warnings, sanitizers and build types: what every target shares.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
foreach(language C CXX)
  set(CMAKE_${language}_FLAGS_DEBUG "-O1 -g")
  set(CMAKE_${language}_FLAGS_RELWITHDEBINFO "-O2 -g -DNDEBUG")
endforeach()
find_package(Threads REQUIRED)

add_library(haul_options INTERFACE)
target_compile_options(haul_options INTERFACE -Wall -Wextra -Wshadow
  $<$<COMPILE_LANGUAGE:CXX>:-Wconversion>)
if(HAUL_WERROR)
  target_compile_options(haul_options INTERFACE -Werror)
endif()
if(HAUL_SANITIZE)
  string(REGEX MATCH "thread" sanitize_thread "${HAUL_SANITIZE}")
  target_compile_options(haul_options INTERFACE
    -fsanitize=${HAUL_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(haul_options INTERFACE -fsanitize=${HAUL_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # GCC's names, which Clang 14 does not define.
    target_compile_definitions(haul_options INTERFACE
      $<IF:$<BOOL:${sanitize_thread}>,__SANITIZE_THREAD__,__SANITIZE_ADDRESS__>=1)
  endif()
  if(HAUL_SANITIZE MATCHES "undefined")
    # src/ has no RTTI, which this one check reads.
    target_compile_options(haul_options INTERFACE -fno-sanitize=vptr)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
      # A driver's functions, found by name, take handles of types that only the driver knows.
      target_compile_options(haul_options INTERFACE -fno-sanitize=function)
    endif()
  endif()
  # GCC 12's ThreadSanitizer cannot map its shadow where the kernel randomizes more than 28 bits.
  if(sanitize_thread AND EXISTS /proc/sys/vm/mmap_rnd_bits)
    file(READ /proc/sys/vm/mmap_rnd_bits random_bits)
    find_program(HAUL_SETARCH setarch)
    if(random_bits GREATER 28 AND HAUL_SETARCH)
      set(CMAKE_CROSSCOMPILING_EMULATOR "${HAUL_SETARCH};-R")
    endif()
  endif()
  if(sanitize_thread AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC warns that ThreadSanitizer does not model fences; the code that relies on one says so itself.
    target_compile_options(haul_options INTERFACE -Wno-tsan)
  endif()
endif()
if(HAUL_COVERAGE)
  # Atomic counters: movers run beside the threads that submit.
  target_compile_options(haul_options INTERFACE --coverage -fprofile-update=atomic)
  target_link_options(haul_options INTERFACE --coverage)
endif()

# haul_precompile(TARGET HEADER...): libraries' headers that many files of a target include, read once.
# Only to save time, and only by GCC: what Clang compiles shows that each file includes what it needs.
function(haul_precompile target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    haul_precompile_always(${target} PRIVATE ${ARGN})
  endif()
endfunction()

# haul_precompile_always(TARGET ARGUMENT...): by Clang, too, as tests may; otherwise as target_precompile_headers().
function(haul_precompile_always target)
  target_precompile_headers(${target} ${ARGN})
  # ccache must see through it.
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess> "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")
endfunction()

# What one file names, another that is compiled with it may name within.
add_library(haul_merged INTERFACE)
target_compile_options(haul_merged INTERFACE -Wno-shadow)

# haul_unity(TARGET [APART REGEX]): several files of the target are compiled as one, so that what they include is read
# and instantiated once: that takes two thirds off their compilation. Files that match APART are compiled alone.
# Without it (preset dev, and Clang in CI, but for the tests) each file shows that it includes what it needs.
function(haul_unity target)
  cmake_parse_arguments(PARSE_ARGV 1 merge "" "APART" "")
  if(NOT HAUL_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 20)
  target_link_libraries(${target} PRIVATE haul_merged)
  if(merge_APART)
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources INCLUDE REGEX "${merge_APART}")
    set_source_files_properties(${sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()
