#----------------------------------------------------------------
# Generated CMake target import file for configuration "Debug".
#----------------------------------------------------------------

# Commands may need to know the format version.
set(CMAKE_IMPORT_FILE_VERSION 1)

# Import target "haul::haul" for configuration "Debug"
set_property(TARGET haul::haul APPEND PROPERTY IMPORTED_CONFIGURATIONS DEBUG)
set_target_properties(haul::haul PROPERTIES
  IMPORTED_LOCATION_DEBUG "${_IMPORT_PREFIX}/lib/libhaul.so.0.1.0"
  IMPORTED_SONAME_DEBUG "libhaul.so.0"
  )

list(APPEND _cmake_import_check_targets haul::haul )
list(APPEND _cmake_import_check_files_for_haul::haul "${_IMPORT_PREFIX}/lib/libhaul.so.0.1.0" )

# Import target "haul::atomic" for configuration "Debug"
set_property(TARGET haul::atomic APPEND PROPERTY IMPORTED_CONFIGURATIONS DEBUG)
set_target_properties(haul::atomic PROPERTIES
  IMPORTED_LOCATION_DEBUG "${_IMPORT_PREFIX}/lib/libhaul-atomic.so.0.1.0"
  IMPORTED_SONAME_DEBUG "libhaul-atomic.so.0"
  )

list(APPEND _cmake_import_check_targets haul::atomic )
list(APPEND _cmake_import_check_files_for_haul::atomic "${_IMPORT_PREFIX}/lib/libhaul-atomic.so.0.1.0" )

# Commands beyond this point should not need to know the version.
set(CMAKE_IMPORT_FILE_VERSION)
