# fagen-kernels.bundle: the winners that ship, compiled for sm_90a (H200 and H100) and sm_80, which a library finds in its folder. The target
# fagen_precompiled makes it by NVRTC on as many threads as there are cores, up to 8; what was compiled before is kept in the build folder.
# FAGEN_PRECOMPILED=ON makes it with all else, and installs it. docs/bundles.md tells its size.
option(FAGEN_PRECOMPILED "Compile the winners that ship, for sm_90a and sm_80, and install them beside the library; needs NVRTC" OFF)
set(fa_precompiled ${PROJECT_BINARY_DIR}/lib/fagen-kernels.bundle)
set(fa_precompiled_emit --bundle --raw --quiet --grid shipped --arch h200,h100,sm_80 --name shipped)
set(FAGEN_PRECOMPILED_EMIT "${fa_precompiled_emit}" CACHE STRING "Arguments of the `fagen emit` that makes fagen-kernels.bundle")
mark_as_advanced(FAGEN_PRECOMPILED_EMIT)
add_custom_command(
  OUTPUT ${fa_precompiled}
  COMMAND ${CMAKE_COMMAND} -E env FAGEN_CACHE_DIR=${PROJECT_BINARY_DIR}/precompiled $<TARGET_FILE:fagen_command> emit ${FAGEN_PRECOMPILED_EMIT}
          -o ${fa_precompiled}
  DEPENDS fagen_command
  VERBATIM COMMAND_EXPAND_LISTS)
if(FAGEN_PRECOMPILED)
  add_custom_target(fagen_precompiled ALL DEPENDS ${fa_precompiled})
else()
  add_custom_target(fagen_precompiled DEPENDS ${fa_precompiled})
endif()
