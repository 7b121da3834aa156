# cmake -DOUT=fagen.o -DLD=ld -DOBJCOPY=objcopy -DHEADER=fagen.h -DOBJECTS=... -DARCHIVES=... -DSTREAMS=streams.o -P merge.cmake
# One relocatable object of OBJECTS and of what they need of ARCHIVES; global are only the functions that HEADER marks FA_API.
function(fa_run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed)
  if(failed)
    file(REMOVE ${OUT})
    message(FATAL_ERROR "merging ${OUT}: ${ARGN}")
  endif()
endfunction()

file(STRINGS ${HEADER} lines REGEX "^FA_API ")
set(keep "")
foreach(line ${lines})
  string(REGEX REPLACE "^[^(]*[ *](fa_[a-z_]+)\\(.*" "\\1\n" name "${line}")
  string(APPEND keep "${name}")
endforeach()
file(WRITE ${OUT}.keep "${keep}")

fa_run(${LD} -r -o ${OUT}.rooms ${OBJECTS} --start-group ${ARCHIVES} --end-group)
fa_run(${OBJCOPY} --redefine-sym stdin=fa_stdin --redefine-sym stdout=fa_stdout --redefine-sym stderr=fa_stderr ${OUT}.rooms)
fa_run(${LD} -r -o ${OUT} ${OUT}.rooms ${STREAMS})
fa_run(${OBJCOPY} --keep-global-symbols=${OUT}.keep ${OUT})
file(REMOVE ${OUT}.rooms)
