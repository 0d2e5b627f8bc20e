# What `make install` installs. haul.pc and the CMake package find their files from where they lie
# themselves, so that PREFIX and DESTDIR need no new configuration.
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/haul")
set(pkgconfig_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

install(TARGETS haul haul_atomic EXPORT haul_targets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(DIRECTORY include/haul DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")

install(EXPORT haul_targets NAMESPACE haul:: DESTINATION "${package_dir}" FILE haulTargets.cmake)
configure_package_config_file(cmake/haulConfig.cmake.in haulConfig.cmake
  INSTALL_DESTINATION "${package_dir}")
# Before 1.0 a minor version may break programs.
write_basic_package_version_file(haulConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/haulConfig.cmake" "${PROJECT_BINARY_DIR}/haulConfigVersion.cmake"
  DESTINATION "${package_dir}")

file(RELATIVE_PATH pkgconfig_to_prefix "/prefix/${pkgconfig_dir}" "/prefix")
string(REGEX REPLACE "/$" "" pkgconfig_to_prefix "${pkgconfig_to_prefix}")
foreach(pc haul haul-atomic)
  configure_file(cmake/${pc}.pc.in ${pc}.pc @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${pc}.pc" DESTINATION "${pkgconfig_dir}")
endforeach()

add_dependencies(haul_product haul_atomic)
foreach(plugin haul_atomic_xdp haul_atomic_fabric haul_fi haul_mpi haul_malloc haul_mem haul_dmadev haul_dsa haul_cuda haul_nic)
  if(TARGET ${plugin})
    install(TARGETS ${plugin} LIBRARY DESTINATION "${HAUL_PLUGIN_DIR}")
    add_dependencies(haul_product ${plugin})
  endif()
endforeach()

if(TARGET haul_cli)
  install(TARGETS haul_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  if(HAUL_PAGES_DIR)
    install(DIRECTORY "${HAUL_PAGES_DIR}/man/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1"
      FILES_MATCHING PATTERN "*.1")
    install(DIRECTORY "${HAUL_PAGES_DIR}/man/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man7"
      FILES_MATCHING PATTERN "*.7")
    install(FILES "${HAUL_PAGES_DIR}/completion/haul"
      DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
    install(FILES "${HAUL_PAGES_DIR}/completion/_haul"
      DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
    install(FILES "${HAUL_PAGES_DIR}/completion/haul.fish"
      DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
  endif()
  # systemd looks in lib/, whatever the libraries' directory is. The unit names the command by its
  # full path, which only the installation knows (--prefix).
  set(units_dir lib/systemd/user)
  install(FILES systemd/haul.socket DESTINATION "${units_dir}")
  install(FILES systemd/haul.logrotate DESTINATION "${CMAKE_INSTALL_DOCDIR}")
  file(READ systemd/haul.service unit)
  string(REPLACE "@bindir@" "<bindir>" unit "${unit}")  # scripts of installation expand @name@
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS systemd/haul.service)
  install(CODE "
    set(bindir \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
    set(unit [=[${unit}]=])
    string(REPLACE \"<bindir>\" \"\${bindir}\" unit \"\${unit}\")
    set(file \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${units_dir}/haul.service\")
    message(STATUS \"Installing: \${file}\")
    file(WRITE \"\${file}\" \"\${unit}\")
    file(CHMOD \"\${file}\" PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)")
endif()

if(HAUL_MANUAL_DIR)
  install(DIRECTORY "${HAUL_MANUAL_DIR}/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man3" FILES_MATCHING PATTERN "*.3")
endif()

if(TARGET bcisim)
  install(TARGETS bcisim RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  install(FILES sim/cli/bcisim.1 DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
  install(FILES sim/plots/plot.py DESTINATION "${HAUL_SIM_DATADIR}")
  install(DIRECTORY sim/traces DESTINATION "${HAUL_SIM_DATADIR}" FILES_MATCHING PATTERN "*.trace")
  add_dependencies(haul_product bcisim)
endif()
