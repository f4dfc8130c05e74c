# `make install PREFIX=…`: a tree that can be moved as a whole. Everything finds its neighbours
# relative to itself: the program and the library by $ORIGIN, pkg-config by pcfiledir, CMake by the
# place of its own file. Libraries out of .deps travel along in lib/tandem,
# with their licences.
set(private_libdir ${CMAKE_INSTALL_LIBDIR}/tandem)
file(RELATIVE_PATH from_bin_to_lib /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})

# The same search path serves the build folder and the installed tree: beside the file itself, and
# where its neighbours are installed. CMake's own exchange of two paths is not used, because it ends
# the first with ':', an empty element, which the loader takes for the current folder. Folders of
# libraries outside this project and the system's own are added by CMake.
function(tandem_search_path target)
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN;${ARGN}"
    BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH_USE_LINK_PATH ON)
endfunction()

tandem_search_path(tandem_shared "$ORIGIN/tandem")
install(TARGETS tandem_shared EXPORT tandemTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET tandem)
  tandem_search_path(tandem "$ORIGIN/${from_bin_to_lib}")
  install(TARGETS tandem RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
# Manual pages and shell completion are printed by the program itself.
if(TARGET tandem AND NOT TANDEM_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  set(pages ${CMAKE_BINARY_DIR}/share)
  add_custom_command(OUTPUT ${pages}/written
    COMMAND ${CMAKE_SOURCE_DIR}/tools/command-pages $<TARGET_FILE:tandem> ${pages}
    COMMAND ${CMAKE_COMMAND} -E touch ${pages}/written
    DEPENDS tandem ${CMAKE_SOURCE_DIR}/tools/command-pages
    COMMENT "Writing manual pages and shell completion" VERBATIM)
  add_custom_target(command_pages ALL DEPENDS ${pages}/written)
  install(DIRECTORY ${pages}/ DESTINATION ${CMAKE_INSTALL_DATADIR} PATTERN written EXCLUDE)
endif()
# Plugins that libtandem opens at run time lie beside it.
set(plugins)
foreach(plugin tandem_onednn tandem_arrow tandem_http tandem_cuda tandem_mpi_openmpi
    tandem_mpi_mpich)
  if(TARGET ${plugin})
    tandem_search_path(${plugin})
    install(TARGETS ${plugin} LIBRARY DESTINATION ${private_libdir})
    list(APPEND plugins "\"${CMAKE_BINARY_DIR}/lib${plugin}.so\"")
  endif()
endforeach()
string(JOIN " " plugins ${plugins})
install(DIRECTORY include/tandem DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE NOTICE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tandem)

# The really needed ones are read off the libraries when they are installed. Each is one file, under the
# name that the loader asks for: archives without links would hold its other names as copies.
install(CODE "
  set(library \"${CMAKE_BINARY_DIR}/libtandem.so.${PROJECT_VERSION}\")
  set(target \"\${CMAKE_INSTALL_PREFIX}/${private_libdir}\")
  get_filename_component(deps \"${CMAKE_SOURCE_DIR}/.deps\" REALPATH)
  file(GET_RUNTIME_DEPENDENCIES LIBRARIES \"\${library}\" ${plugins} RESOLVED_DEPENDENCIES_VAR found
    UNRESOLVED_DEPENDENCIES_VAR missing)
  if(missing)
    message(FATAL_ERROR \"libtandem needs \${missing}, which the loader does not find here\")
  endif()
  foreach(file IN LISTS found)
    # The build folder has links to them.
    get_filename_component(soname \"\${file}\" NAME)
    get_filename_component(file \"\${file}\" REALPATH)
    string(FIND \"\${file}\" \"\${deps}/\" at)
    if(at EQUAL 0)
      file(RELATIVE_PATH name \"\${deps}\" \"\${file}\")
      string(REGEX REPLACE \"/.*\" \"\" name \"\${name}\")
      file(INSTALL \"\${file}\" DESTINATION \"\${target}\" RENAME \${soname})
      if(name STREQUAL arrow) # S3 is loaded from beside it, when it is asked for
        file(GLOB loaded \"\${deps}/arrow/lib/libarrow_s3.so.*\")
        file(INSTALL \${loaded} DESTINATION \"\${target}\")
      endif()
      file(INSTALL \"\${deps}/\${name}/LICENSE\" RENAME LICENSE.\${name}
        DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/doc/tandem\")
    endif()
  endforeach()
")

string(REGEX REPLACE "[^/]+" ".." up "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
configure_file(cmake/tandem.pc.in ${CMAKE_BINARY_DIR}/generated/tandem.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/generated/tandem.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

include(CMakePackageConfigHelpers)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/tandemConfigVersion.cmake
  COMPATIBILITY SameMajorVersion)
install(EXPORT tandemTargets NAMESPACE tandem:: FILE tandemConfig.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tandem)
install(FILES ${CMAKE_BINARY_DIR}/generated/tandemConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tandem)
