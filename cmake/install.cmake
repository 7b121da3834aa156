# What `cmake --install` puts in place; FAGEN_INSTALL=OFF, the default where fagen is part of another project: nothing.
#
# The package: find_package(fagen) gives fagen::fagen (shared), fagen::static, fagen::launch, fagen::command and fagen_bundle(); pkg-config
# knows fagen and fagen_launch. Beside it the command, the documentation, manual pages and completion.
if(NOT FAGEN_INSTALL)
  return()
endif()
include(CMakePackageConfigHelpers)
set(fa_made ${PROJECT_BINARY_DIR}/package)
set(fa_package ${CMAKE_INSTALL_LIBDIR}/cmake/fagen)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/fagenConfig.cmake.in ${fa_made}/fagenConfig.cmake
  INSTALL_DESTINATION ${fa_package} PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${fa_made}/fagenConfigVersion.cmake VERSION ${PROJECT_VERSION} COMPATIBILITY SameMajorVersion)
file(RELATIVE_PATH fa_pc_root /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_CURRENT_LIST_DIR}/fagen.pc.in ${fa_made}/fagen.pc @ONLY)
configure_file(${CMAKE_CURRENT_LIST_DIR}/fagen_launch.pc.in ${fa_made}/fagen_launch.pc @ONLY)
install(FILES ${PROJECT_SOURCE_DIR}/runtime/fagen.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS fagen_archive fagen_shared fagen_launch fagen_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(FAGEN_GGML)
  install(TARGETS fagen_ggml_plugin LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(FILES ${PROJECT_SOURCE_DIR}/ggml/seam.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} RENAME fagen_ggml_seam.h)
endif()
if(FAGEN_PRECOMPILED)
  install(FILES ${fa_precompiled} DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(FILES ${fa_made}/fagenConfig.cmake ${fa_made}/fagenConfigVersion.cmake ${CMAKE_CURRENT_LIST_DIR}/fagenBundle.cmake
  DESTINATION ${fa_package})
install(FILES ${fa_made}/fagen.pc ${fa_made}/fagen_launch.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The pages link each other as they do in the source tree. (CMAKE_INSTALL_DOCDIR of a parent project is the parent's.)
set(fa_doc ${CMAKE_INSTALL_DATAROOTDIR}/doc/fagen)
if(PROJECT_IS_TOP_LEVEL)
  set(fa_doc ${CMAKE_INSTALL_DOCDIR})
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CONTRIBUTING.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md
  DESTINATION ${fa_doc})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${fa_doc})
install(FILES ${PROJECT_SOURCE_DIR}/python/examples/compare.py ${PROJECT_SOURCE_DIR}/python/examples/choices.py
  ${PROJECT_SOURCE_DIR}/python/examples/wisdom.py DESTINATION ${fa_doc}/python/examples)
install(FILES ${PROJECT_SOURCE_DIR}/examples/embed.c ${PROJECT_SOURCE_DIR}/examples/decode.c DESTINATION ${fa_doc}/examples)

# The command writes its manual pages and completions itself, of its tables of options: it must run here. That of a sanitizer's build is
# not for others.
if(CMAKE_CROSSCOMPILING OR FAGEN_SANITIZE)
  message(STATUS "fagen: no manual pages and no shell completion: the command does not run where it is built, or is instrumented")
  return()
endif()
set(fa_manual ${PROJECT_BINARY_DIR}/manual)
add_custom_command(
  OUTPUT ${fa_manual}/made
  COMMAND ${CMAKE_COMMAND} -DCOMMAND=$<TARGET_FILE:fagen_command> -DOUT=${fa_manual} -P ${CMAKE_CURRENT_LIST_DIR}/manual.cmake
  DEPENDS fagen_command ${CMAKE_CURRENT_LIST_DIR}/manual.cmake
  VERBATIM)
add_custom_target(fagen_manual ALL DEPENDS ${fa_manual}/made)
install(DIRECTORY ${fa_manual}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
install(FILES ${fa_manual}/bash/fagen DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/bash-completion/completions)
install(FILES ${fa_manual}/zsh/_fagen DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/zsh/site-functions)
