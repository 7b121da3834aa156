# What the build needs, each as one imported target. Headers of the CUDA toolkit only: nothing of CUDA is linked.

# cuda.h: FAGEN_CUDA_INCLUDE (scripts/ sets it to the unpacked wheels), else an installed toolkit.
set(FAGEN_CUDA_INCLUDE "" CACHE PATH "Folder of cuda.h and nvrtc.h; empty = find the CUDA toolkit")
add_library(fagen_cuda_headers INTERFACE)
if(FAGEN_CUDA_INCLUDE)
  set(fa_cuda_include "${FAGEN_CUDA_INCLUDE}")
else()
  find_package(CUDAToolkit 12.4 QUIET)
  set(fa_cuda_wheels "")
  if(FAGEN_PYTHON) # pip has brought wheels into its environment, whose folders this Python knows
    find_package(Python3 REQUIRED COMPONENTS Interpreter)
    execute_process(COMMAND ${Python3_EXECUTABLE} -c "import sys; print(';'.join(p + '/nvidia/cu13/include' for p in sys.path if p))"
      OUTPUT_VARIABLE fa_cuda_wheels OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
  find_path(fa_cuda_include cuda.h HINTS ${CUDAToolkit_INCLUDE_DIRS} /usr/local/cuda/include ${fa_cuda_wheels} NO_CACHE)
endif()
if(NOT fa_cuda_include OR NOT EXISTS "${fa_cuda_include}/nvrtc.h")
  message(FATAL_ERROR "cuda.h and nvrtc.h were not found: install a CUDA toolkit >= 12.4, or set FAGEN_CUDA_INCLUDE, or run scripts/test, which fetches them")
endif()
target_include_directories(fagen_cuda_headers SYSTEM INTERFACE "${fa_cuda_include}")
add_library(fagen::cuda_headers ALIAS fagen_cuda_headers)

# A static library and its header as fagen::NAME; the product carries it inside.
function(fa_static_dependency name header archive package)
  find_path(fa_${name}_include ${header} PATH_SUFFIXES lua5.4)
  find_library(fa_${name}_library NAMES ${archive})
  if(NOT fa_${name}_include OR NOT fa_${name}_library)
    message(FATAL_ERROR "${header} or ${archive} was not found: on Debian, apt-get install ${package}")
  endif()
  add_library(fagen_dep_${name} INTERFACE)
  target_include_directories(fagen_dep_${name} SYSTEM INTERFACE "${fa_${name}_include}")
  target_link_libraries(fagen_dep_${name} INTERFACE "${fa_${name}_library}")
  add_library(fagen::${name} ALIAS fagen_dep_${name})
endfunction()
fa_static_dependency(lua lua.h liblua5.4.a liblua5.4-dev)
fa_static_dependency(jansson jansson.h libjansson.a libjansson-dev)
fa_static_dependency(xxhash xxhash.h libxxhash.a libxxhash-dev)
