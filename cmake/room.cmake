# fa_room(NAME SEES folder... SOURCES file... LINKS target...)
#
# One OBJECT library, fagen_NAME, of one folder. Its include path holds a view of itself and of the folders it names, each as
# a link in the build tree, so that `#include "gen/space.h"` from gen's left neighbour, or from a folder that does not name
# gen, fails to compile. The public header is the contract that every folder sees: <fagen.h>.
set(fa_views ${PROJECT_BINARY_DIR}/views)
file(MAKE_DIRECTORY ${fa_views}/api)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/runtime/fagen.h ${fa_views}/api/fagen.h SYMBOLIC)

function(fa_view out folder)
  file(MAKE_DIRECTORY ${fa_views}/${folder})
  if(NOT EXISTS ${fa_views}/${folder}/${folder})
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${folder} ${fa_views}/${folder}/${folder} SYMBOLIC)
  endif()
  set(${out} ${fa_views}/${folder} PARENT_SCOPE)
endfunction()

add_library(fagen_flags INTERFACE)
target_compile_definitions(fagen_flags INTERFACE _GNU_SOURCE FA_VERSION_STRING="${PROJECT_VERSION}")
target_include_directories(fagen_flags INTERFACE ${fa_views}/api)
target_compile_options(fagen_flags INTERFACE -fno-lto) # the objects are joined by `ld -r`
if(PROJECT_IS_TOP_LEVEL OR FAGEN_WERROR)
  target_compile_options(fagen_flags INTERFACE -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla)
else() # the warnings of a parent project, which may be errors there, are meant for its own sources
  target_compile_options(fagen_flags INTERFACE -w)
endif()
if(FAGEN_WERROR)
  target_compile_options(fagen_flags INTERFACE -Werror)
endif()
if(FAGEN_SANITIZE STREQUAL "thread")
  target_compile_options(fagen_flags INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(fagen_flags INTERFACE -fsanitize=thread)
elseif(FAGEN_SANITIZE)
  target_compile_options(fagen_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(fagen_flags INTERFACE -fsanitize=address,undefined)
endif()

if(FAGEN_FUZZ)
  target_compile_options(fagen_flags INTERFACE -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
    -fno-omit-frame-pointer -g -UNDEBUG)
  target_link_options(fagen_flags INTERFACE -fsanitize=address,undefined)
endif()

if(FAGEN_PORTABLE) # all other libraries are static in every build
  target_link_options(fagen_flags INTERFACE -static-libgcc -s)
endif()

function(fa_room name)
  cmake_parse_arguments(R "" "" "SEES;SOURCES;LINKS" ${ARGN})
  add_library(fagen_${name} OBJECT ${R_SOURCES})
  foreach(folder ${name} ${R_SEES})
    fa_view(view ${folder})
    target_include_directories(fagen_${name} PRIVATE ${view})
  endforeach()
  target_link_libraries(fagen_${name} PRIVATE fagen_flags ${R_LINKS})
endfunction()
